import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownFlags } from './shown-flags.ts';

test('flags are shown as pflag prints them, with what holds for those that were not given', () => {
  const given = { detach: true, port: '0', 'host-disk': ['/a', '/b'], json: undefined };
  assert.deepEqual(shownFlags(given, { port: '40000', nodes: '1' }), {
    detach: 'true',
    port: '40000',
    'host-disk': '[/a,/b]',
    nodes: '1',
  });
});
