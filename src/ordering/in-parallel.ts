/**
 * Handles a list of items with some workers at once, in the order of the list.
 *
 * @param each handles one item; it catches what goes wrong, so that the others go on
 * @param mayTake whether this worker, counted from 0, takes another item; it ends where it may not
 */
export async function inParallel<T>(
  items: readonly T[],
  workers: number,
  each: (item: T) => Promise<void>,
  mayTake: (worker: number) => boolean = () => true,
): Promise<void> {
  let next = 0
  const work = async (worker: number): Promise<void> => {
    while (next < items.length && mayTake(worker)) {
      next += 1
      await each(items[next - 1] as T)
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
}
