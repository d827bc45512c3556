/** The occasion of an alert that comes at most once an hour for one source. */
export const hourly = (source: string, at: number): string => `${source}:${Math.floor(at / 3_600_000)}`
