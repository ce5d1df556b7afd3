import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import { notFound } from '../../../../apimachinery/src/meta/status.ts';
import type { AccessCredential } from '../../../../kubevirt/src/kinds/kubevirt.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { keepCredentials } from './keep-credentials.ts';

const source = (secretName: string) => ({ secret: { secretName } });
const CREDENTIALS: AccessCredential[] = [
  { sshPublicKey: { source: source('keys'), propagationMethod: { qemuGuestAgent: { users: ['tiny'] } } } },
  { userPassword: { source: source('words'), propagationMethod: { qemuGuestAgent: {} } } },
];

/** A guest with an agent that takes what it is asked, and the Secrets of its namespace. */
function scene(accessCredentials = CREDENTIALS) {
  const clock = createFakeClock();
  const secrets = new Map<string, Record<string, string>>();
  let version = 0;
  const asked: string[] = [];
  const events: string[] = [];
  const agentFacts: { os: object; interfaces: []; frozen: 'frozen' | ''; missing: string[] } = {
    os: {},
    interfaces: [],
    frozen: '',
    missing: [],
  };
  const state = { connected: true, runState: 'running' as const, agentConnected: true, agentFacts };
  let refusal: string | undefined;
  const guest = partly<Guest>({
    signal: new AbortController().signal,
    state,
    agent: {
      converse: (talk) =>
        talk(async (command, args) => {
          if (refusal !== undefined) throw new QmpError('refused', `${command}: ${refusal}`);
          asked.push(`${command} ${JSON.stringify(args)}`);
        }),
    },
  });
  const launcher = partly<LauncherState>({
    environment: {
      clock,
      signal: new AbortController().signal,
      client: {
        get: (async (_: unknown, { name }: { name: string }) => {
          const data = secrets.get(name);
          if (!data) throw notFound({ group: '', resource: 'secrets' }, name);
          return { metadata: { uid: name, resourceVersion: String(version) }, data };
        }) as LauncherState['environment']['client']['get'],
      },
    },
    log: silentLogger,
    vmi: {
      metadata: { name: 'vm', namespace: 'default' },
      spec: { domain: { devices: {} }, accessCredentials },
    },
    record: {},
    changed: () => {},
    event: (type, reason, message) => void events.push(`${type} ${reason} ${message}`),
  });
  const keeper = keepCredentials(launcher, guest);
  return {
    keeper,
    asked,
    events,
    state,
    refuse: (why: string | undefined) => {
      refusal = why;
    },
    write(name: string, data: Record<string, string>) {
      version++;
      secrets.set(
        name,
        Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
      );
    },
    /** The time of one more look goes by. */
    async look() {
      await clock.advance(10_000);
      keeper.look();
      await clock.advance(0);
    },
  };
}

const SET_KEYS = (...keys: string[]) =>
  `guest-ssh-add-authorized-keys ${JSON.stringify({ username: 'tiny', keys, reset: true })}`;
const SET_PASSWORD = (text: string) =>
  `guest-set-user-password ${JSON.stringify({ username: 'tiny', password: Buffer.from(text).toString('base64'), crypted: false })}`;

// Compat KubeVirt's API, P1, yes: accessCredentials by qemuGuestAgent, noCloud and configDrive, AccessCredentialsSynchronized
// S-1274: Keys and passwords of Secrets reach the guest by its agent, again when a Secret changes or the agent comes anew, and not otherwise; a key that is taken out of its Secret is taken from the guest.
test('keys and passwords follow their Secrets', async () => {
  const { keeper, asked, events, state, write, look } = scene();
  write('keys', { one: 'ssh-rsa A\nssh-rsa B' });
  await look();
  assert.deepEqual(keeper.state, { type: 'failed', reason: 'SecretNotFound', message: 'Secret words not found' });
  write('words', { tiny: 'first' });
  await look();
  assert.deepEqual(keeper.state, { type: 'synchronized' });
  assert.deepEqual(asked.splice(0), [SET_KEYS('ssh-rsa A', 'ssh-rsa B'), SET_PASSWORD('first')]);
  await look();
  await look();
  assert.deepEqual(asked, [], 'nothing has changed');
  write('keys', { one: 'ssh-rsa B' });
  await look();
  assert.deepEqual(asked.splice(0), [SET_KEYS('ssh-rsa B'), SET_PASSWORD('first')]);
  write('keys', {});
  await look();
  assert.deepEqual(asked.splice(0)[0], SET_KEYS());
  state.agentConnected = false;
  await look();
  assert.deepEqual(keeper.state, { type: 'failed', reason: 'AgentNotConnected', message: 'Guest agent is offline' });
  state.agentConnected = true;
  await look();
  assert.deepEqual(asked.splice(0), [SET_KEYS(), SET_PASSWORD('first')], 'it may have been booted anew');
  assert.deepEqual(events, [
    'Warning AccessCredentialsSyncFailed Access credentials sync failed: Secret words not found',
    'Normal AccessCredentialsSyncSuccess Access credentials sync successful.',
    'Normal AccessCredentialsSyncSuccess Access credentials sync successful.',
  ]);
  keeper.stop();
});

test('what cannot be done says why, and is tried again', async () => {
  const { keeper, asked, state, write, look, refuse } = scene();
  write('keys', { one: 'ssh-rsa A' });
  write('words', { tiny: 'w' });
  state.agentFacts.missing = ['guest-set-user-password'];
  await look();
  assert.deepEqual(keeper.state, {
    type: 'failed',
    reason: 'UnsupportedAgent',
    message: "This guest agent doesn't support required password commands",
  });
  state.agentFacts.missing = [];
  refuse("failed to lookup user 'tiny'");
  await look();
  assert.deepEqual(keeper.state, {
    type: 'failed',
    reason: 'SyncFailed',
    message: "guest-ssh-add-authorized-keys: failed to lookup user 'tiny'",
  });
  assert.deepEqual(asked, []);
  refuse('x'.repeat(10_000));
  await look();
  assert.equal(keeper.state?.type === 'failed' && keeper.state.message.length, 256, 'a guest fills no status');
  refuse(undefined);
  state.agentFacts.frozen = 'frozen';
  await look();
  assert.deepEqual(asked, [], 'a frozen file system takes no keys');
  state.agentFacts.frozen = '';
  await look();
  assert.deepEqual(keeper.state, { type: 'synchronized' });
  keeper.stop();
  const none = scene([{ sshPublicKey: { source: source('keys'), propagationMethod: { noCloud: {} } } }]);
  await none.look();
  assert.equal(none.keeper.state, undefined, 'what cloud-init brings is not the business of the agent');
});
