import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageError } from './command.ts';
import { durationFlag } from './duration-flag.ts';
import { tokenWebhookChoice } from './token-webhook-choice.ts';

test('a duration is written as Go writes it', () => {
  const of = (value: string): number => durationFlag({ ttl: value }, 'ttl', { or: 7 });
  assert.deepEqual(['0s', '1m30s', '250ms'].map(of), [0, 90_000, 250]);
  assert.equal(durationFlag({}, 'ttl', { or: 7 }), 7);
  for (const wrong of ['5', '-1s', 'soon', '']) assert.throws(() => of(wrong), UsageError, wrong);
});

// S-340: The token webhook's time to remember is a duration.
test('the token webhook remembers for a duration, as kube-apiserver says it; bare seconds are taken as before', () => {
  const file = '/etc/hook';
  const flags = (ttl?: string) => ({
    'authentication-token-webhook-config-file': file,
    ...(ttl !== undefined && { 'authentication-token-webhook-cache-ttl': ttl }),
  });
  const cached = (ttl?: string) => tokenWebhookChoice(flags(ttl))?.cacheMs;
  assert.deepEqual([cached(), cached('0s'), cached('2m30s'), cached('90')], [120_000, 0, 150_000, 90_000]);
});
