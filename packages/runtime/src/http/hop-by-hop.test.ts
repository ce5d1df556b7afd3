import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endToEnd } from './hop-by-hop.ts';

test('endToEnd() leaves out what belongs to the connection, and what it names', () => {
  const headers = {
    connection: 'close, X-Mine',
    'x-mine': '1',
    te: 'trailers',
    'transfer-encoding': 'chunked',
    upgrade: 'h2c',
    accept: '*/*',
    'content-length': '3',
  };
  assert.deepEqual(endToEnd(headers), { accept: '*/*', 'content-length': '3' });
});
