import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Resolves when the server listens; rejects when the port is taken. */
export function listen(server: Server, port = 0, host = '127.0.0.1'): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(port, host, () => resolve(server.off('error', reject)))
  })
}

/** The address to reach a server at; one that listens everywhere is reached on loopback. */
export function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  if (address === '0.0.0.0' || address === '::') return `http://127.0.0.1:${port}`
  return family === 'IPv6' ? `http://[${address}]:${port}` : `http://${address}:${port}`
}

/** Ends every connection at once, the idle and the busy ones. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
