import { describe, expect, test } from 'vitest'
import { fileSystemOf } from '../../src/storage/data-folder.ts'

describe('a data folder', () => {
  test.each([
    ['NFS', 0x6969],
    ['SMB', 0x517b],
    ['SMB (CIFS)', 0xff534d42],
    ['SMB (CIFS)', 0xff534d42 | 0],
    ['SMB 2', 0xfe534d42],
    ['SMB 2', 0xfe534d42 | 0],
    ['9p', 0x01021997],
  ])('on %s is refused: %i', (name, type) => {
    expect(fileSystemOf(type)).toEqual({ name, use: 'refused' })
  })

  test('on FUSE is warned of', () => {
    expect(fileSystemOf(0x65735546)).toEqual({ name: 'FUSE', use: 'doubtful' })
  })

  test.each([
    ['ext4', 0xef53],
    ['xfs', 0x58465342],
    ['btrfs', 0x9123683e],
    ['zfs', 0x2fc12fc1],
    ['overlay', 0x794c7630],
    ['tmpfs', 0x01021994],
  ])('on %s is fine', (_name, type) => {
    expect(fileSystemOf(type).use).toBe('usable')
  })
})
