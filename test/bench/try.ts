import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'

const N = process.execPath,
  B = '/work/main/test/bench/'
async function run(kind: string, amount: number, first: number) {
  const f = `/tmp/bench-${kind}-${first}.db`
  rmSync(f, { force: true })
  rmSync(f + '-wal', { force: true })
  rmSync(f + '-shm', { force: true })
  rmSync(f + '.lock', { force: true })
  const s = spawn(
    N,
    [
      ...(process.env.PROF && kind === 'quayside' ? ['--cpu-prof', '--cpu-prof-dir=/tmp/prof'] : []),
      B + 'server.ts',
      kind,
      f,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const [d] = await once(s.stdout, 'data')
  const { port } = JSON.parse(String(d))
  const l = spawn(
    N,
    [B + 'load.ts', JSON.stringify({ url: `http://127.0.0.1:${port}`, connections: 64, amount, first })],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let o = ''
  l.stdout.on('data', (x) => (o += x))
  await once(l, 'close')
  s.kill('SIGTERM')
  await once(s, 'exit')
  return JSON.parse(o)
}
for (let i = 0; i < 2; i++) {
  for (const [k, a] of [
    ['ceiling', 30000],
    ['plain', 6000],
    ['quayside', 20000],
  ] as const)
    console.log(k, JSON.stringify(await run(k, a, i * 100000)))
}
