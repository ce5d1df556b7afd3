import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { listenTls, newAuthority } from '../../../../test/testkit/listen-tls.ts';
import { createRenewedHandler } from '../../../client/src/transport/renewed-handler.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { NEVER, NO_BYTES } from '../../../runtime/src/http/seam.ts';
import { openRenewedAccess } from './renewed-access.ts';

/** A server whose valid token changes; it counts what it was asked and remembers who showed which certificate. */
async function lapsingServer(t: TestContext) {
  const authority = await newAuthority();
  const state = { token: 'first', asked: [] as string[], certificates: [] as string[] };
  const server = await listenTls(async ({ headers, peer }) => {
    state.asked.push(headers['authorization'] ?? '');
    state.certificates.push(peer.certificate?.commonName ?? '');
    return headers['authorization'] === `Bearer ${state.token}`
      ? { status: 200, headers: {}, body: NO_BYTES }
      : { status: 401, headers: {}, body: new TextEncoder().encode('{}') };
  }, authority);
  t.after(() => server.close());
  const dir = mkdtempSync(join(tmpdir(), 'coracle-access-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, 'config');
  const write = (user: object, { server: url = `https://127.0.0.1:${server.port}`, current = 'c' } = {}): void =>
    writeFileSync(
      path,
      JSON.stringify({
        'current-context': current,
        contexts: [
          { name: 'c', context: { cluster: 'c', user: 'u' } },
          { name: 'other', context: { cluster: 'other', user: 'u' } },
        ],
        clusters: [
          {
            name: 'c',
            cluster: {
              server: url,
              'certificate-authority-data': Buffer.from(authority.certificate).toString('base64'),
              extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'here' } }],
            },
          },
          { name: 'other', cluster: { server: 'https://192.0.2.1' } },
        ],
        users: [{ name: 'u', user }],
      }),
    );
  const clock = createFakeClock();
  const open = (environment: Record<string, string> = {}) => {
    const access = openRenewedAccess(path, { clock, environment });
    t.after(() => access.close());
    const handler = createRenewedHandler(access);
    return async () =>
      (
        await handler({
          method: 'GET',
          path: '/api',
          query: '',
          headers: {},
          body: NO_BYTES,
          peer: { address: '' },
          signal: NEVER,
        })
      ).status;
  };
  return { authority, state, dir, path, write, clock, open };
}

// S-495: A credential that lapses is replaced while the process runs: kubeconfigs and token files are read again,
//   plug-ins run again, tokens of components and certificates of nodes are asked for anew.
test('a token file is read again each minute, and at once when the server answers 401', async (t) => {
  const { state, dir, write, clock, open } = await lapsingServer(t);
  const file = join(dir, 'token');
  writeFileSync(file, 'first\n');
  // As in client-go the file wins over a token beside it.
  write({ tokenFile: 'token', token: 'stale' });
  const ask = open();
  assert.equal(await ask(), 200);

  // Lapsed, and the next one is there: nobody but the handler sees the 401.
  writeFileSync(file, 'second\n');
  state.token = 'second';
  await clock.advance(2000);
  assert.equal(await ask(), 200);
  assert.deepEqual(state.asked, ['Bearer first', 'Bearer first', 'Bearer second']);

  // Rotated while the old one is still good: taken within a minute, without a 401.
  writeFileSync(file, 'third\n');
  await clock.advance(61_000);
  state.token = 'third';
  assert.equal(await ask(), 200);
  assert.deepEqual(state.asked.slice(3), ['Bearer third']);

  // Lapsed with none to follow: a 401 is a 401, the file is not read for each, and what comes later is taken.
  state.token = 'fourth';
  await clock.advance(2000);
  assert.equal(await ask(), 401);
  writeFileSync(file, '');
  await clock.advance(2000);
  assert.equal(await ask(), 401, 'the token beside it is taken where the file is empty');
  rmSync(file);
  await clock.advance(2000);
  assert.equal(await ask(), 401);
  writeFileSync(file, 'fourth');
  await clock.advance(2000);
  assert.equal(await ask(), 200);
});

// S-495
test('a kubeconfig is read again: its credential counts, its current context and server stay', async (t) => {
  const { authority, state, path, write, clock, open } = await lapsingServer(t);
  write({ token: 'first' });
  const ask = open();
  assert.equal(await ask(), 200);
  const pair = await authority.issue({ commonName: 'renewed', usage: 'client', days: 1 });
  const certificate = {
    'client-certificate-data': Buffer.from(pair.certificate).toString('base64'),
    'client-key-data': Buffer.from(pair.key).toString('base64'),
  };
  write({ token: 'second', ...certificate }, { current: 'other' });
  state.token = 'second';
  await clock.advance(2000);
  assert.equal(await ask(), 200);
  assert.deepEqual(state.certificates, ['', '', 'renewed']);

  // Half written, or another cluster under the same name: what there was is kept.
  const whole = readFileSync(path, 'utf8');
  writeFileSync(path, whole.slice(0, whole.length / 2));
  await clock.advance(61_000);
  assert.equal(await ask(), 200);
  write({ token: 'stolen' }, { server: 'https://192.0.2.1' });
  await clock.advance(61_000);
  assert.equal(await ask(), 200);
});

/** A program that logs its calls and prints the credential that lies beside it. */
function plugin(dir: string) {
  const program = join(dir, 'login');
  writeFileSync(
    program,
    `#!/bin/sh
printf '%s|%s|%s|%s\\n' "$*" "$STAGE" "$HOME_MARK" "$KUBERNETES_EXEC_INFO" >> '${dir}/calls'
cat '${dir}/credential'
echo 'said on stderr' >&2
exit "$(cat '${dir}/code' 2>/dev/null || echo 0)"
`,
  );
  chmodSync(program, 0o700);
  return {
    calls: () => readFileSync(join(dir, 'calls'), 'utf8').trim().split('\n'),
    prints: (status: object, apiVersion = 'client.authentication.k8s.io/v1') =>
      writeFileSync(join(dir, 'credential'), JSON.stringify({ kind: 'ExecCredential', apiVersion, status })),
    fails: (code: number) => writeFileSync(join(dir, 'code'), String(code)),
  };
}

const STANZA = {
  apiVersion: 'client.authentication.k8s.io/v1',
  command: './login',
  args: ['$(touch x)', 'two words'],
  env: [{ name: 'STAGE', value: 'test' }],
  interactiveMode: 'IfAvailable',
  provideClusterInfo: true,
};

// S-496: A credential plug-in of a kubeconfig gives tokens and certificates; what it prints is never shown.
test('a credential plug-in runs when it must: first, at expiry, and on a 401', async (t) => {
  const { authority, state, dir, write, clock, open } = await lapsingServer(t);
  const login = plugin(dir);
  const expires = (ms: number) => new Date(clock.now() + ms).toISOString();
  login.prints({ token: 'first', expirationTimestamp: expires(3_600_000) });
  write({ exec: STANZA });
  const ask = open({ HOME_MARK: 'inherited' });
  assert.deepEqual(await Promise.all([ask(), ask(), ask()]), [200, 200, 200]);
  assert.equal(login.calls().length, 1);
  const [words, stage, inherited, info] = login.calls()[0]!.split('|');
  assert.deepEqual([words, stage, inherited], ['$(touch x) two words', 'test', 'inherited']);
  const { kind, spec } = JSON.parse(info!);
  assert.deepEqual([kind, spec.interactive, spec.cluster.config], ['ExecCredential', false, { audience: 'here' }]);
  assert.equal(Buffer.from(spec.cluster['certificate-authority-data'], 'base64').toString(), authority.certificate);

  await clock.advance(3_600_001);
  login.prints({ token: 'second' });
  state.token = 'second';
  assert.equal(await ask(), 200);
  assert.deepEqual(state.asked.at(-1), 'Bearer second', 'the expired one was not sent');
  assert.equal(login.calls().length, 2);

  // Revoked before its time; the next credential is a certificate beside a token.
  await clock.advance(20_000);
  const pair = await authority.issue({ commonName: 'plugged', usage: 'client', days: 1 });
  login.prints({ token: 'third', clientCertificateData: pair.certificate, clientKeyData: pair.key });
  state.token = 'third';
  assert.deepEqual(await Promise.all([ask(), ask()]), [200, 200]);
  assert.equal(login.calls().length, 3);
  assert.equal(state.certificates.at(-1), 'plugged');

  // A server that takes nothing does not have it run for each request.
  state.token = 'none';
  await clock.advance(20_000);
  for (let i = 0; i < 5; i++) assert.equal(await ask(), 401);
  assert.equal(login.calls().length, 4);
});

// S-496
test('a plug-in that fails or prints nonsense is one line, without what it printed', async (t) => {
  const { dir, write, clock, open } = await lapsingServer(t);
  const login = plugin(dir);
  const cases: readonly [() => void, RegExp][] = [
    [() => login.fails(3), /^credential plug-in failed: .*login: exit code 3: said on stderr$/],
    [() => writeFileSync(join(dir, 'credential'), 'canary'), /what it printed is not JSON$/],
    [() => writeFileSync(join(dir, 'credential'), '{"kind":"Pod","x":"canary"}'), /is not an ExecCredential$/],
    [() => login.prints({ token: 'canary' }, 'client.authentication.k8s.io/v1beta1'), /answered in another version$/],
    [() => login.prints({}), /it didn't return a token or cert\/key pair$/],
    [() => login.prints({ clientCertificateData: 'canary' }), /only a certificate or only a key/],
    [() => login.prints({ token: 'canary', expirationTimestamp: 'soon' }), /its expirationTimestamp is not a time$/],
    [() => writeFileSync(join(dir, 'credential'), 'x'.repeat(2 * 1024 * 1024)), /wrote more than 1048576 bytes/],
  ];
  write({ exec: STANZA });
  const ask = open();
  for (const [prepare, message] of cases) {
    login.fails(0);
    login.prints({ token: 'canary' });
    prepare();
    await clock.advance(20_000);
    await assert.rejects(ask(), (error: Error) => {
      assert.match(error.message, message);
      assert.ok(!error.message.includes('canary') && !error.message.includes('\n'), error.message);
      return true;
    });
  }
  const stanzas: readonly [object, RegExp][] = [
    [{ ...STANZA, apiVersion: 'client.authentication.k8s.io/v1alpha1' }, /exec.apiVersion must be .*v1 or .*v1beta1/],
    [{ ...STANZA, command: '' }, /exec.command must be specified/],
    [{ ...STANZA, interactiveMode: undefined }, /exec.interactiveMode must be specified/],
    [{ ...STANZA, interactiveMode: 'Always' }, /have no standard input/],
    [{ ...STANZA, args: [1] }, /exec.args/],
    [{ ...STANZA, env: [{ value: 'x' }] }, /exec.env/],
  ];
  for (const [exec, message] of stanzas) {
    write({ exec });
    assert.throws(() => open(), message);
  }
  write({ exec: { ...STANZA, command: 'no-such-login', installHint: 'get it at the shop' } });
  await assert.rejects(open()(), /no-such-login: not found in PATH.*: get it at the shop/);
});
