/** The style sheet, the two scripts and the icon. They are the same for all people and need no sign-in. */
import { Router } from 'express'
import { keptFile } from '../http/answers.ts'

const own = (name: string): URL => new URL(name, import.meta.url)

const files = {
  style: { name: 'console.css', type: 'text/css', file: own('console.css') },
  script: { name: 'page-updates.js', type: 'text/javascript', file: own('page-updates.js') },
  htmx: { name: 'htmx.js', type: 'text/javascript', file: new URL(import.meta.resolve('htmx.org/dist/htmx.min.js')) },
  icon: { name: 'icon.svg', type: 'image/svg+xml', file: own('icon.svg') },
}

const read = Object.entries(files).map(([key, { name, type, file }]) => {
  const { digest, send } = keptFile(file, type)
  return { key, send, path: `/assets/${digest}/${name}` }
})

export const assets = Object.fromEntries(read.map(({ key, path }) => [key, path])) as Record<keyof typeof files, string>

export function assetsRouter(): Router {
  const router = Router({ strict: true, caseSensitive: true })
  for (const { path, send } of read) router.get(path, send)
  return router
}
