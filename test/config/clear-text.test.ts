import { describe, expect, test } from 'vitest'
import { isClearText } from '../../src/config/warnings.ts'

describe('what is sent to an address', () => {
  test.each([
    'http://supplier.example/v1',
    'http://8.8.8.8/v1',
    'http://0x08080808/v1',
    'http://172.15.0.1/',
    'http://172.32.0.1/',
    'http://192.169.0.1/',
    'http://100.128.0.1/',
    'http://169.253.0.1/',
    'http://[2001:db8::1]/',
    'http://[::ffff:8.8.8.8]/',
    'http://10.0.0.1.example/',
    'http://localhost.example/',
    'HTTP://SUPPLIER.EXAMPLE./v1',
  ])('crosses a public network unencrypted: %s', (address) => {
    expect(isClearText(address)).toBe(true)
  })

  test.each([
    'https://supplier.example/v1',
    'https://8.8.8.8/',
    'http://127.0.0.1:8090/v1',
    'http://127.9.9.9/',
    'http://2130706433/',
    'http://localhost:8090/v1',
    'http://LOCALHOST./',
    'http://shop.localhost/',
    'http://10.1.2.3/',
    'http://172.16.0.1/',
    'http://172.31.255.1/',
    'http://192.168.1.1/',
    'http://100.64.0.1/',
    'http://169.254.1.1/',
    'http://[::1]/',
    'http://[fd00::1]/',
    'http://[fe80::1]/',
    'http://[::ffff:10.0.0.1]/',
    'http://sandbox:8090/v1',
    'http://shop.internal/',
    'http://shop.local/',
    'http://shop.home.arpa/',
  ])('stays on this machine, on a private network, or is encrypted: %s', (address) => {
    expect(isClearText(address)).toBe(false)
  })
})
