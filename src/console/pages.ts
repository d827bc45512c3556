/** All pages, in the order in which the navigation has them. */
import { overviewPage } from './overview.ts'
import type { Page } from './page.ts'
import { sessionPage } from './signin.ts'

export const consolePages: readonly Page[] = [overviewPage, sessionPage]
