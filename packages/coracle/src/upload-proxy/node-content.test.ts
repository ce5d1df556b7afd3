import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { readContent } from './node-content.ts';

const CONTENT = Buffer.from('0123456789');

/** Answers in chunks of three bytes, from where it is asked, or from the beginning as agents of before did. */
const agentOf =
  (knowsParts: boolean): ApiHandler =>
  async ({ query }) => {
    const from = knowsParts ? Number(new URLSearchParams(query).get('from')) : 0;
    const sent = CONTENT.subarray(from);
    return {
      status: 200,
      headers: { 'content-length': String(sent.length) },
      body: (sink) => {
        for (let at = 0; at < sent.length; at += 3) sink.write(sent.subarray(at, at + 3));
        sink.end();
      },
    };
  };

// S-1673
test('a part of a file is the part that was asked for, from agents of either version', async () => {
  const signal = new AbortController().signal;
  const file = { name: 'disk.img', bytes: CONTENT.length };
  for (const knowsParts of [true, false])
    for (let from = 0; from < CONTENT.length; from++)
      for (let to = from + 1; to <= CONTENT.length; to++) {
        const parts: Buffer[] = [];
        const place = { agent: agentOf(knowsParts), handle: 'h', signal };
        for await (const part of readContent(place, file, { from, to })) parts.push(part);
        assert.equal(
          Buffer.concat(parts).toString(),
          CONTENT.toString().slice(from, to),
          `${from}-${to} ${knowsParts}`,
        );
      }
});
