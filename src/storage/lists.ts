/**
 * Lists of texts in one column, as JSON: an element may hold any character, also the one that another form would split at.
 */
export const listText = (list: readonly string[]): string => JSON.stringify(list)

export const listOf = (column: string): string[] => JSON.parse(column) as string[]
