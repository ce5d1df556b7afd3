import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { AccessCredential, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { agentCredentials, agentSecrets, missingCommands, unsupportedReason } from './agent-credentials.ts';

const secret = (secretName: string) => ({ secret: { secretName } });
const keysFor = (name: string, ...users: string[]): AccessCredential => ({
  sshPublicKey: { source: secret(name), propagationMethod: { qemuGuestAgent: { users } } },
});
const passwordsOf = (name: string): AccessCredential => ({
  userPassword: { source: secret(name), propagationMethod: { qemuGuestAgent: {} } },
});
const byDisk: AccessCredential = { sshPublicKey: { source: secret('disk'), propagationMethod: { noCloud: {} } } };
const spec = (...accessCredentials: AccessCredential[]): VirtualMachineInstanceSpec =>
  partly<VirtualMachineInstanceSpec>({ accessCredentials });
const data = (entries: Record<string, string>) =>
  new Map(Object.entries(entries).map(([name, text]) => [name, new TextEncoder().encode(text)]));

// S-1272: A user gets the keys of all Secrets whose credentials name them, one a line of each entry, and no others; a password is the Secret's entry of the user's name.
test('agentCredentials(): keys and passwords by user', () => {
  const asked = spec(keysFor('a', 'root', 'tiny'), keysFor('b', 'tiny'), byDisk, passwordsOf('p'), passwordsOf('gone'));
  assert.deepEqual(agentSecrets(asked), ['a', 'b', 'p', 'gone']);
  const secrets = new Map([
    ['a', data({ one: 'ssh-ed25519 A\n# note\n\nssh-rsa B x\n', two: 'ssh-rsa C' })],
    ['b', data({ one: 'ssh-rsa C\nssh-rsa D' })],
    ['p', data({ tiny: 'secret\n' })],
    ['disk', data({ one: 'ssh-rsa E' })],
  ]);
  const { keys, passwords } = agentCredentials(asked, secrets);
  assert.deepEqual(Object.fromEntries(keys), {
    root: ['ssh-ed25519 A', 'ssh-rsa B x', 'ssh-rsa C'],
    tiny: ['ssh-ed25519 A', 'ssh-rsa B x', 'ssh-rsa C', 'ssh-rsa D'],
  });
  assert.deepEqual(Object.fromEntries(passwords), { tiny: 'secret' });
  const emptied = agentCredentials(spec(keysFor('a', 'root')), new Map([['a', data({})]]));
  assert.deepEqual(emptied.keys.get('root'), [], 'the account is closed again');
});

test('unsupportedReason(): what an agent lacks for this guest, in upstream words', () => {
  const all = new Set(missingCommands(new Set()));
  const without = (...names: string[]) => missingCommands(new Set([...all].filter((name) => !names.includes(name))));
  const keys = spec(keysFor('a', 'root'));
  const cases: readonly [VirtualMachineInstanceSpec, readonly string[], string | undefined][] = [
    [spec(), without(), undefined],
    [spec(), without('guest-get-users'), "This guest agent doesn't support required basic commands"],
    [spec(), without('guest-ssh-add-authorized-keys', 'guest-set-user-password'), undefined],
    [keys, without('guest-ssh-add-authorized-keys'), "This guest agent doesn't support required public key commands"],
    [keys, without('guest-set-user-password'), undefined],
    [
      spec(passwordsOf('p')),
      without('guest-set-user-password'),
      "This guest agent doesn't support required password commands",
    ],
    [spec(byDisk), without('guest-ssh-add-authorized-keys'), undefined],
  ];
  for (const [asked, missing, reason] of cases) assert.equal(unsupportedReason(asked, missing), reason, missing.join());
});
