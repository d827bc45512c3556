import { describe, expect, test } from 'vitest'
import { actions } from '../../src/console/search.ts'
import { openApi } from '../support/api-world.ts'
import { insertDeliveries, peopleOf } from '../support/console-data.ts'
import { OTHER_STORE } from '../support/api-world.ts'
import { STORE } from '../support/test-app.ts'

const worldOf = async () => {
  const world = await openApi({ storeNames: { [STORE]: 'North Games', [OTHER_STORE]: 'South' } })
  return { ...world, ...peopleOf(world) }
}
