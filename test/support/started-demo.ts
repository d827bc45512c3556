/** The demo, as `npm start` runs it where nothing is configured. */
import { onTestFinished } from 'vitest'
import { openDemo } from '../../src/demo/service.ts'
import { until } from './service-process.ts'

/** Starts the demo and reads its banner; `order` sends the request that the banner prints. */
export async function startedDemo(dataDir: string, port: number) {
  let printed = ''
  const demo = await openDemo({
    port,
    dataDir,
    onFatal: (failure) => {
      throw failure
    },
    out: {
      write: (text) => {
        printed += text
      },
    },
    commandLine: (command) => `npx quayside ${command}`,
  })
  let isOpen = true
  const close = async () => {
    if (isOpen) await demo.close()
    isOpen = false
  }
  onTestFinished(close)
  const [, url = ''] = /curl -s (\S+)/.exec(printed) ?? []
  const [, token = ''] = /Bearer (\S+)'/.exec(printed) ?? []
  const [, body = ''] = /-d '(.+)'/.exec(printed) ?? []
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return {
    banner: printed,
    /** The address of the sandbox's page. */
    sandbox: /sandbox +(http:\S+)/.exec(printed)?.[1] ?? '',
    offered: (JSON.parse(body) as { reference: string }).reference,
    printed: () => printed,
    api: (path: string) => fetch(url.replace('/orders', path), { headers }),
    order: async () => (await fetch(url, { method: 'POST', headers, body })).status,
    keysOf: (reference: string) => until('the keys', () => printed.includes(`order ${reference} is fulfilled`)),
    close,
  }
}
