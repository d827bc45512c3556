/** A list of whole numbers that grows, in four bytes each. */
export function createGrowing() {
  let numbers = new Int32Array(1 << 12)
  let count = 0
  return {
    push(number: number): void {
      if (count === numbers.length) {
        const larger = new Int32Array(count * 2)
        larger.set(numbers)
        numbers = larger
      }
      numbers[count] = number
      count += 1
    },
    at: (place: number): number => numbers[place] ?? -1,
    size: () => count,
  }
}
