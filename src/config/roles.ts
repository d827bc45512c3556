/**
 * What a process does. Several processes may share a database: `web` takes deliveries and orders, and serves the API and the
 * console. `worker` buys, reads, syncs, publishes and hands over; one process at a time does so. `all` does both.
 */
export const roles = ['all', 'web', 'worker'] as const
export type Role = (typeof roles)[number]
