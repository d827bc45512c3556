/** The style sheet, the two scripts and the icon. Their paths change with their content, so that browsers keep them for a year. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { Router } from 'express'
import { sendCompressed } from './markup-answer.ts'

const own = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

const files = {
  style: { name: 'console.css', type: 'text/css', file: own('console.css') },
  script: { name: 'page-updates.js', type: 'text/javascript', file: own('page-updates.js') },
  htmx: {
    name: 'htmx.js',
    type: 'text/javascript',
    file: fileURLToPath(import.meta.resolve('htmx.org/dist/htmx.min.js')),
  },
  icon: { name: 'icon.svg', type: 'image/svg+xml', file: own('icon.svg') },
}

const read = Object.entries(files).map(([key, { name, type, file }]) => {
  const bytes = readFileSync(file)
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
  return { key, type, bytes, path: `/assets/${digest}/${name}` }
})

export const assets = Object.fromEntries(read.map(({ key, path }) => [key, path])) as Record<keyof typeof files, string>

/** Serves the style sheet, the scripts and the icon. They are the same for all people and need no sign-in. Each is compressed once. */
export function assetsRouter(): Router {
  const router = Router({ strict: true, caseSensitive: true })
  for (const { path, type, bytes } of read) {
    let kept: Buffer | undefined
    const compressed = () => {
      kept ??= gzipSync(bytes, { level: 9 })
      return kept
    }
    router.get(path, (_request, response) => {
      response.set('cache-control', 'public, max-age=31536000, immutable').type(type)
      sendCompressed(response, bytes, compressed)
    })
  }
  return router
}
