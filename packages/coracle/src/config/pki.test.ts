import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { openPki } from './pki.ts';

const DAY = 86_400_000;
const options = { commonName: 'server', ipAddresses: ['127.0.0.1'], usage: 'server', days: 365 } as const;

function place(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'coracle-pki-'));
  t.after(() => rmSync(directory, { recursive: true }));
  return join(directory, 'pki');
}
const fits = ({ certificate, key }: { certificate: string; key: string }, ca: string): boolean => {
  const read = new X509Certificate(certificate);
  return read.checkPrivateKey(createPrivateKey(key)) && read.verify(new X509Certificate(ca).publicKey);
};

// S-107
test('a second opening finds the same keys, in files for their owner only', async (t) => {
  const directory = place(t);
  const first = await openPki(directory, systemClock);
  const pair = await first.pair('server', options);
  assert.ok(fits(pair, first.ca));
  const second = await openPki(directory, systemClock);
  assert.deepEqual([second.ca, second.signingKey], [first.ca, first.signingKey]);
  assert.deepEqual(await second.pair('server', options), pair);
  assert.deepEqual(readdirSync(directory).sort(), ['ca.crt', 'ca.key', 'sa.key', 'server.crt', 'server.key']);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  for (const name of readdirSync(directory)) assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name);
});

// S-311: A lost key of the cluster is reported and never replaced silently.
test('a key that is lost is an error that names it, and no other takes its place', async (t) => {
  for (const name of ['ca.key', 'ca.crt', 'sa.key']) {
    for (const lose of [(file: string) => writeFileSync(file, ''), (file: string) => rmSync(file)]) {
      const directory = place(t);
      await openPki(directory, systemClock);
      const held = Object.fromEntries(readdirSync(directory).map((one) => [one, readFileSync(join(directory, one))]));
      lose(join(directory, name));
      await assert.rejects(
        openPki(directory, systemClock),
        new RegExp(`/${name} is empty or missing: restore it from a backup, or remove `),
      );
      for (const [one, content] of Object.entries(held))
        if (one !== name) assert.deepEqual(readFileSync(join(directory, one)), content, one);
    }
  }
});

// S-138: Two starts at the same moment agree on one authority; a certificate is renewed before its end and when it does
//   not fit.
test('openings at the same moment agree on one authority and one signing key', async (t) => {
  const directory = place(t);
  const opened = await Promise.all(Array.from({ length: 6 }, () => openPki(directory, systemClock)));
  const last = await openPki(directory, systemClock);
  for (const pki of opened) assert.deepEqual([pki.ca, pki.signingKey], [last.ca, last.signingKey]);
  assert.deepEqual(readdirSync(join(directory, '..')), ['pki'], 'what lost the race is cleared away');
});

// S-138
test('a certificate is renewed when it nears its end, lacks an address, or its key is another', async (t) => {
  const directory = place(t);
  const clock = createFakeClock(Date.now());
  const pki = await openPki(directory, clock);
  const pair = await pki.pair('server', options);
  await clock.advance(334 * DAY);
  assert.deepEqual(await pki.pair('server', options), pair);
  await clock.advance(2 * DAY);
  const renewed = await pki.pair('server', options);
  assert.notEqual(renewed.certificate, pair.certificate);

  const more = await pki.pair('server', { ...options, ipAddresses: ['127.0.0.1', '10.96.0.1'] });
  assert.ok(new X509Certificate(more.certificate).checkIP('10.96.0.1'));

  await pki.pair('other', options);
  copyFileSync(join(directory, 'other.key'), join(directory, 'server.key'));
  assert.ok(fits(await pki.pair('server', options), pki.ca));
  writeFileSync(join(directory, 'server.crt'), 'not a certificate');
  assert.ok(fits(await pki.pair('server', options), pki.ca));
});

// S-821
test('a pair of a day is made anew when three tenths are left, and takes the place of one that lasts longer', async (t) => {
  const clock = createFakeClock(Date.now());
  const pki = await openPki(place(t), clock);
  const long = await pki.pair('node', { ...options, usage: 'client' });
  const day = { ...options, usage: 'client', days: 1 } as const;
  const pair = await pki.pair('node', day);
  assert.notEqual(pair.certificate, long.certificate);
  assert.ok(Date.parse(new X509Certificate(pair.certificate).validTo) <= clock.now() + DAY);
  await clock.advance(0.6 * DAY);
  assert.deepEqual(await pki.pair('node', day), pair);
  await clock.advance(0.2 * DAY);
  assert.notEqual((await pki.pair('node', day)).certificate, pair.certificate);
});

// S-189
test('the front proxy has an authority of its own, kept from one opening to the next', async (t) => {
  const directory = place(t);
  const first = await openPki(directory, systemClock);
  const proxy = await first.frontProxy();
  assert.notEqual(proxy.ca, first.ca);
  assert.ok(fits(proxy.client, proxy.ca));
  assert.ok(!fits(proxy.client, first.ca), 'the cluster CA must not vouch for the proxy');
  assert.match(new X509Certificate(proxy.client.certificate).subject, /CN=front-proxy-client/);
  assert.deepEqual(await (await openPki(directory, systemClock)).frontProxy(), proxy);
});
