/** Keys as pictures: each is a real one, and has its serial in a comment, so that no two have the same bytes. */
import { crc32, deflateSync } from 'node:zlib'

type PictureType = 'image/png' | 'image/gif' | 'image/jpeg'

export interface KeyPicture {
  type: PictureType
  /** Base64. */
  serial: string
}

/** A JPEG of one grey pixel, after its comment: tables of one code each, the frame, the scan. */
const ONE_CODE = [1, ...Array.from({ length: 15 }, () => 0), 0]
const JPEG_REST = Buffer.from([
  ...[0xff, 0xdb, 0, 67, 0, ...Array.from({ length: 64 }, () => 1)],
  ...[0xff, 0xc0, 0, 11, 8, 0, 1, 0, 1, 1, 1, 0x11, 0],
  ...[0xff, 0xc4, 0, 20, 0x00, ...ONE_CODE],
  ...[0xff, 0xc4, 0, 20, 0x10, ...ONE_CODE],
  ...[0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0x3f, 0xff, 0xd9],
])

/** A picture of one pixel. @param number which of the three kinds of pictures it is follows from it */
export function pictureOf(serial: string, number: number): KeyPicture {
  const make = [png, gif, jpeg][number % 3] ?? png
  const { type, bytes } = make(Buffer.from(serial, 'latin1'))
  return { type, serial: bytes.toString('base64') }
}

function png(comment: Buffer): { type: PictureType; bytes: Buffer } {
  const chunk = (name: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    check.writeUInt32BE(crc32(body))
    return Buffer.concat([length, body, check])
  }
  // One pixel of eight grey bits.
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
  const parts = [
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('tEXt', Buffer.concat([Buffer.from('Comment\0', 'latin1'), comment])),
    chunk('IDAT', deflateSync(Buffer.from([0, 0x80]))),
    chunk('IEND', Buffer.alloc(0)),
  ]
  return { type: 'image/png', bytes: Buffer.concat(parts) }
}

function gif(comment: Buffer): { type: PictureType; bytes: Buffer } {
  const parts = [
    Buffer.from('GIF89a', 'latin1'),
    Buffer.from([1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff]),
    Buffer.from([0x21, 0xfe, comment.length]),
    comment,
    Buffer.from([0, 0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b]),
  ]
  return { type: 'image/gif', bytes: Buffer.concat(parts) }
}

function jpeg(comment: Buffer): { type: PictureType; bytes: Buffer } {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(comment.length + 2)
  const parts = [Buffer.from([0xff, 0xd8, 0xff, 0xfe]), length, comment, JPEG_REST]
  return { type: 'image/jpeg', bytes: Buffer.concat(parts) }
}
