/**
 * `npm run shopify-schema`: writes the part of each version of Shopify's Admin schema that our documents reach to
 * `test/fixtures/shopify`. The schemas come from the package of Shopify's own tools for developers, which nothing here depends on.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { buildClientSchema } from 'graphql'
import { faultsOf, reachedSchema, schemaFile, schemaVersions, shopDocuments } from '../../support/shopify-schema.ts'

const PACKAGE = '@shopify/dev-mcp@1.16.0'

const folder = mkdtempSync(path.join(tmpdir(), 'quayside-shopify-schema-'))
try {
  const [packed] = JSON.parse(execFileSync('npm', ['pack', PACKAGE, '--json'], { cwd: folder, encoding: 'utf8' }))
  execFileSync('tar', ['-xzf', packed.filename], { cwd: folder })
  for (const version of schemaVersions) {
    const file = path.join(folder, `package/dist/data/admin_${version}.json.gz`)
    const introspection = JSON.parse(gunzipSync(readFileSync(file)).toString('utf8'))
    const schema = buildClientSchema(introspection.data ?? introspection)
    for (const [name, text] of shopDocuments) {
      for (const fault of faultsOf(schema, text)) {
        process.stderr.write(`${version}: ${name}: ${fault}\n`)
        process.exitCode = 1
      }
    }
    const text = reachedSchema(schema, [...shopDocuments.values()])
    writeFileSync(schemaFile(version), text)
    process.stdout.write(`${schemaFile(version)}: ${text.length} characters\n`)
  }
} finally {
  rmSync(folder, { recursive: true })
}
