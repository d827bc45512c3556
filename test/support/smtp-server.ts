/** A mail server that speaks enough SMTP to take a message, keeps it, and answers as a test wants. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface ReceivedMail {
  from: string
  to: string[]
  /** Headers and text as they came, without the dots that SMTP doubles. */
  text: string
}

export async function startSmtpServer() {
  const received: ReceivedMail[] = []
  const sockets = new Set<Socket>()
  const smtp = {
    received,
    url: '',
    refuse: undefined as { verb: string; about?: string; answer: string } | undefined,
    isSilent: false,
    connections: 0,
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    smtp.connections += 1
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    if (smtp.isSilent) return
    let [from, to, text, pending]: [string, string[], string | undefined, string] = ['', [], undefined, '']
    const say = (line: string) => void socket.write(`${line}\r\n`)
    say('220 mail.test ESMTP')
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (pending + chunk).split('\r\n')
      pending = lines.pop() ?? ''
      for (const line of lines) {
        const verb = line.slice(0, 4).toUpperCase()
        if (text !== undefined && line !== '.') text += `${line.replace(/^\.\./, '.')}\r\n`
        else if (smtp.refuse?.verb === (text === undefined ? verb : 'BODY') && line.includes(smtp.refuse.about ?? '')) {
          text = undefined
          say(smtp.refuse.answer)
        } else if (text !== undefined) {
          received.push({ from, to, text })
          text = undefined
          say('250 taken')
        } else if (verb === 'EHLO') say('250-mail.test\r\n250-AUTH PLAIN\r\n250 8BITMIME')
        else if (verb === 'AUTH') say('235 known')
        else if (verb === 'MAIL') {
          from = line.slice(10)
          to = []
          say('250 so be it')
        } else if (verb === 'RCPT') {
          to.push(/<(.*)>/.exec(line)?.[1] ?? '')
          say('250 known')
        } else if (verb === 'DATA') {
          text = ''
          say('354 go on')
        } else if (verb === 'QUIT') socket.end('221 bye\r\n')
        else say('502 unknown')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  smtp.url = `smtp://duty:s3cret-of-mail@127.0.0.1:${(server.address() as AddressInfo).port}`
  return smtp
}
