// test:full: a guest is booted twice, and Secrets are followed
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SECRETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { byAgent } from './in-guest.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC';
const source = (secretName: string) => ({ secret: { secretName } });
const secret = (name: string, stringData: Record<string, string>) =>
  board.client.create(SECRETS, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: NAMESPACE },
    stringData,
  });
const synchronized = ({ status }: VirtualMachineInstance): boolean =>
  status?.conditions?.some((one) => one.type === 'AccessCredentialsSynchronized' && one.status === 'True') ?? false;
const authorized = (user: string, name = 'opened'): Promise<string> =>
  byAgent(board, name, `cat ${user === 'root' ? '/root' : `/home/${user}`}/.ssh/authorized_keys`);
/** Hashes the word with the salt of the account: the same hash is the same password. */
const isPassword = async (user: string, word: string): Promise<boolean> =>
  (
    await byAgent(
      board,
      'opened',
      `h=$(grep ^${user}: /etc/shadow | cut -d: -f2); s=$(echo "$h" | cut -d'$' -f3); [ "$(mkpasswd -m sha512 ${word} "$s")" = "$h" ] && echo same`,
    )
  ).includes('same');

// S-1275: In a real guest keys and passwords of Secrets are there once AccessCredentialsSynchronized says so; changes of a Secret follow while the guest runs, keys that were taken out are gone, and so are those that somebody else added. An agent that lacks the commands is named as unsupported.
test('keys and passwords reach a real guest by its agent, and follow their Secrets', async () => {
  await secret('keys', { alice: `${KEY} alice`, bob: `${KEY}BOB bob` });
  await secret('words', { tiny: 'first-word' });
  await board.createVmi('opened', {
    ...kernelSpec({ terminationGracePeriodSeconds: 0 }),
    accessCredentials: [
      { sshPublicKey: { source: source('keys'), propagationMethod: { qemuGuestAgent: { users: ['root', 'tiny'] } } } },
      { userPassword: { source: source('words'), propagationMethod: { qemuGuestAgent: {} } } },
    ],
  });
  await board.until('opened', 'its credentials', synchronized);
  for (const user of ['root', 'tiny']) assert.match(await authorized(user), /alice\n.*bob$/);
  assert.equal(await byAgent(board, 'opened', 'stat -c %U:%a /home/tiny/.ssh/authorized_keys'), 'tiny:600\n');
  assert.equal(await isPassword('tiny', 'first-word'), true);

  await byAgent(board, 'opened', 'printf "\nssh-rsa AAAA intruder" >>/root/.ssh/authorized_keys');
  await board.client.patch(
    SECRETS,
    { namespace: NAMESPACE, name: 'keys' },
    { type: 'merge', body: { data: { alice: null } } },
  );
  await board.client.patch(
    SECRETS,
    { namespace: NAMESPACE, name: 'words' },
    { type: 'merge', body: { stringData: { tiny: 'second-word' } } },
  );
  await eventually('the new password', () => isPassword('tiny', 'second-word'));
  for (const user of ['root', 'tiny'])
    await eventually('only bob', async () => /^\S+ \S+ bob$/.test(await authorized(user)));

  // An agent that may not write keys, as a cautious owner of the guest starts it.
  const blocked = 'qemu-ga -m virtio-serial -p /dev/virtio-ports/org.qemu.guest_agent.0 -t /run/agent';
  await byAgent(
    board,
    'opened',
    `(sleep 1; killall qemu-ga; sleep 1; exec /usr/sbin/${blocked} -b guest-ssh-add-authorized-keys) >/dev/null 2>&1 &`,
  );
  const lack = "This guest agent doesn't support required public key commands";
  const refused = await board.until('opened', 'what the agent lacks', ({ status }) =>
    Boolean(status?.conditions?.some(({ reason }) => reason === 'UnsupportedAgent')),
  );
  assert.deepEqual(
    ['AgentVersionNotSupported', 'AccessCredentialsSynchronized'].map((type) => {
      const found = refused.status?.conditions?.find((one) => one.type === type);
      return [found?.status, found?.reason, found?.message];
    }),
    [
      ['True', lack, undefined],
      ['False', 'UnsupportedAgent', lack],
    ],
  );

  // The guest lives in memory: it has forgotten all of it when it was booted anew.
  assert.equal(await board.put('opened/reset'), 200);
  await board.until('opened', 'the end of its agent', (vmi) => !synchronized(vmi));
  await board.until('opened', 'its credentials again', synchronized);
  assert.match(await authorized('tiny'), /^\S+ \S+ bob$/);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: 'opened' });
});

// S-1278: Keys of a Secret are in the data of cloud-init when the guest starts, on its NoCloud disk or config drive, whichever the credential names.
for (const [propagation, volume] of [
  ['noCloud', 'cloudInitNoCloud'],
  ['configDrive', 'cloudInitConfigDrive'],
] as const)
  test(`keys reach a real guest by cloud-init: ${propagation}`, async () => {
    const name = propagation.toLowerCase();
    await secret(name, { alice: `${KEY} alice\n${KEY} bob` });
    const spec = kernelSpec({ terminationGracePeriodSeconds: 0 });
    await board.createVmi(name, {
      ...spec,
      domain: {
        ...spec.domain,
        devices: { ...spec.domain.devices, disks: [{ name: 'seed', disk: { bus: 'virtio' } }] },
      },
      volumes: [{ name: 'seed', [volume]: { userData: '#cloud-config\n' } }],
      accessCredentials: [{ sshPublicKey: { source: source(name), propagationMethod: { [propagation]: {} } } }],
    });
    const vmi = await board.until(name, 'its agent', (one) => one.status?.guestOSInfo?.id !== undefined);
    assert.match(await authorized('tiny', name), /alice\n.*bob\n$/);
    assert.equal(synchronized(vmi), false, 'the condition is about what the agent brings');
    await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
  });
