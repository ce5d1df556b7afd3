import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { openPki, type Pki } from '../config/pki.ts';
import { keepNodePair } from './node-pair.ts';

const DAY = 86_400_000;

// S-821: Nodes in the process of the server prove their names to other nodes with certificates of a day, replaced while
//   they are good; one of an earlier version, which lasts a year, is not used.
test('nodes of this process prove their names with certificates of a day, which are replaced while they are good', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'coracle-pair-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const clock = createFakeClock(Date.now());
  const pki = await openPki(join(directory, 'pki'), clock);
  // Of an earlier version.
  const year = { commonName: 'system:node:n', organizations: ['system:nodes'], usage: 'client', days: 365 } as const;
  const old = await pki.pair('node-n-client', year);
  let isFull = false;
  let made = 0;
  const issuing: Pick<Pki, 'pair'> = {
    pair: async (name, options) => {
      if (isFull) throw new Error('no space');
      made++;
      return pki.pair(name, options);
    },
  };
  const stop = new AbortController();
  const options = { nodeName: 'n', pki: issuing, clock, log: silentLogger, signal: stop.signal };
  const pair = await keepNodePair(options);
  const seen = new Set<string>();
  /** The certificate of the moment, good now and for a day at most. */
  const now = (): X509Certificate => {
    const certificate = new X509Certificate(pair().certificate);
    const left = Date.parse(certificate.validTo) - clock.now();
    assert.ok(left > 0 && left <= DAY, `${left / DAY} days left`);
    assert.match(certificate.subject, /O=system:nodes\nCN=system:node:n$/);
    seen.add(certificate.fingerprint256);
    return certificate;
  };
  assert.notEqual(now().fingerprint256, new X509Certificate(old.certificate).fingerprint256);
  /** Moves time on in steps, with time for what is issued to be issued. */
  const pass = async (days: number): Promise<void> => {
    for (let steps = Math.round(days * 24 * 2); steps > 0; steps--) {
      await clock.advance(30 * 60_000);
      for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setTimeout(resolve, 2));
      now();
    }
  };
  await pass(1.6);
  assert.equal(seen.size, 3, 'one each 0.7 days');
  // A renewal that fails is tried again: the certificate has hours left.
  isFull = true;
  await pass(0.6);
  isFull = false;
  await pass(0.1);
  assert.equal(seen.size, 4);
  stop.abort();
  const last = made;
  await clock.advance(DAY);
  assert.equal(made, last, 'it has ended');
});
