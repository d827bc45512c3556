/** What campaigns of restores have counted; filled while they run, so that a failure is counted too. */
export interface Figures {
  restores: number
  backups: number
  /** Files that were copied back without a word, and how many of them lacked a purchase and were recognised. */
  copiedBack: number
  recognised: number
  /** Files that were copied back together with their marker, as the snapshot of a machine has them. */
  snapshots: number
  /** Databases that were lost with their markers, where the service went on with a new one. */
  lost: number
  charges: number
  /** Line parts for which charges less refunds came to more than one, each time that was looked. */
  doubleCharges: number
  /** Orders that the store handed in again and that the backup did not hold. */
  handedInAgain: number
  /** Units that a shop added or took away after its order was taken. */
  changed: number
  /** What a person had to do: lift a freeze or the hold of a restore, decide a review. */
  lifted: number
  decided: number
}

export const noFigures = (): Figures => ({
  restores: 0,
  backups: 0,
  copiedBack: 0,
  recognised: 0,
  snapshots: 0,
  lost: 0,
  charges: 0,
  doubleCharges: 0,
  handedInAgain: 0,
  changed: 0,
  lifted: 0,
  decided: 0,
})
