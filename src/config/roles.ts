/**
 * What a process does, of those that share a database: `web` takes deliveries and orders and serves API and console; `worker` buys,
 * reads, syncs, publishes and hands over, one of them at a time; `all` is both.
 */
export const roles = ['all', 'web', 'worker'] as const
export type Role = (typeof roles)[number]
