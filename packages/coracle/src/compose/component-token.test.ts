import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { createTokenSource } from './component-token.ts';

const HOUR = 3_600_000;

// S-495
test('a token is renewed at four fifths of its life, tried again when that fails, and on a refusal', async () => {
  const clock = createFakeClock();
  let minted = 0;
  let isDown = false;
  const mint = async () => {
    if (isDown) throw new Error('down');
    return { token: `t${++minted}`, expires: clock.now() + HOUR };
  };
  const tokens = await createTokenSource(mint, { clock, log: silentLogger });
  assert.equal(tokens.current(), 't1');
  await clock.advance(HOUR * 0.79);
  assert.equal(tokens.current(), 't1');
  isDown = true;
  await clock.advance(HOUR * 0.1);
  assert.equal(tokens.current(), 't1');
  isDown = false;
  await clock.advance(70_000);
  assert.equal(tokens.current(), 't2');

  // Revoked, or signed with a key that the server no longer has: all who are refused share one request.
  assert.deepEqual(await Promise.all([tokens.renew('t2'), tokens.renew('t2')]), ['t3', 't3']);
  assert.equal(await tokens.renew('t2'), 't3', 'a late refusal of the one before asks for nothing');
  assert.equal(await tokens.renew('t3'), 't3', 'not asked again for each request');
  await clock.advance(6000);
  assert.equal(await tokens.renew('t3'), 't4');
  tokens.stop();
  await clock.advance(HOUR * 2);
  assert.equal(tokens.current(), 't4');
});

// S-495
test('a host that slept finds its token renewed within a minute of waking', async () => {
  const clock = createFakeClock();
  let slept = 0;
  const now = () => clock.now() + slept;
  let minted = 0;
  const mint = async () => ({ token: `t${++minted}`, expires: now() + HOUR });
  const tokens = await createTokenSource(mint, { clock: { ...clock, now }, log: silentLogger });
  await clock.advance(60_000);
  slept = 8 * HOUR;
  await clock.advance(60_000);
  assert.equal(tokens.current(), 't2');
  tokens.stop();
});
