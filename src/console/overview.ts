import { html } from './html.ts'
import type { Page } from './page.ts'

/** Is everything well, and what waits for a person. */
export const overviewPage: Page = {
  path: '/overview',
  role: 'viewer',
  navigation: { group: '', label: 'Overview' },
  show: async () => ({ title: 'Overview', main: html`<header class="title"><h1>Overview</h1></header>` }),
}
