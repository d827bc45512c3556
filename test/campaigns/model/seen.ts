/** The states seen so far, as rows of small numbers, each once: an open-addressed table over one growing array. */
export function createSeen(width: number) {
  let rows = new Int32Array(width << 16)
  let table = new Int32Array(1 << 18).fill(-1)
  let count = 0

  const place = (row: Int32Array): number => {
    const mask = table.length - 1
    let hash = 0
    for (let column = 0; column < width; column += 1) {
      hash = Math.imul(hash ^ (row[column] ?? 0), 0x9e3779b1)
      hash ^= hash >>> 15
    }
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = table[slot] ?? -1
      if (number < 0 || isAt(number, row)) return slot
    }
  }
  const isAt = (number: number, row: Int32Array): boolean => {
    const start = number * width
    for (let column = 0; column < width; column += 1) if (rows[start + column] !== row[column]) return false
    return true
  }
  const grow = (): void => {
    const larger = new Int32Array(rows.length * 2)
    larger.set(rows)
    rows = larger
    table = new Int32Array(table.length * 2).fill(-1)
    for (let number = 0; number < count; number += 1) {
      table[place(rows.subarray(number * width, (number + 1) * width))] = number
    }
  }
  return {
    /** @returns the number of the row; it is new when that is the former size */
    add(row: Int32Array): number {
      const slot = place(row)
      const known = table[slot] ?? -1
      if (known >= 0) return known
      if ((count + 1) * width > rows.length) {
        grow()
        return this.add(row)
      }
      rows.set(row, count * width)
      table[slot] = count
      count += 1
      return count - 1
    },
    /** @returns -1 when it is not there */
    find: (row: Int32Array): number => table[place(row)] ?? -1,
    size: () => count,
    /** All rows, one after the other. */
    get numbers() {
      return rows
    },
  }
}
