/** Reads our external references as people do: `q1.<store>.<reference>.<line>.<part>.<generation>`. */

export const isOurs = (reference: string | null): reference is string => reference?.startsWith('q1.') === true

/** What must be charged at most once: store order, line and part. */
export const partOf = (reference: string): string => reference.split('.').slice(2, 5).join('/')

/** The store's own reference of its order. */
export const orderOf = (reference: string): string => reference.split('.')[2] ?? ''

/** What keys are handed over for, as the store names it. */
export const lineOf = (reference: string): string => reference.split('.').slice(2, 4).join('/')

/** How many times its part was bought before, plus one. */
export const generationOf = (reference: string): number => Number(reference.split('.')[5])
