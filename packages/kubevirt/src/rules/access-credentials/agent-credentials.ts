/**
 * Which keys and passwords the agent of a guest has to put into it (pkg/virt-launcher/virtwrap/access-credentials), and whether
 * it can: pure.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstance } from '../../kinds/kubevirt.ts';

type Spec = DeepReadonly<VirtualMachineInstance['spec']>;
/** The data of a Secret. */
export type SecretData = ReadonlyMap<string, Uint8Array>;

export interface AgentCredentials {
  /** User -> all keys that open the account, and no others: also none, where the last has gone. */
  readonly keys: ReadonlyMap<string, readonly string[]>;
  readonly passwords: ReadonlyMap<string, string>;
}

/** The Secrets that hold what goes to the guest by its agent, each once. */
export function agentSecrets({ accessCredentials = [] }: Spec): readonly string[] {
  const names = accessCredentials.flatMap(({ sshPublicKey, userPassword }) => {
    const byAgent = [sshPublicKey, userPassword].filter((one) => one?.propagationMethod.qemuGuestAgent !== undefined);
    return byAgent.flatMap((one) => one?.source.secret?.secretName ?? []);
  });
  return [...new Set(names)];
}

/** The keys of a Secret: one a line in each of its entries. */
export const publicKeysOf = (secret: SecretData): string[] =>
  [...secret.values()].flatMap((value) =>
    new TextDecoder()
      .decode(value)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#')),
  );

/** What the guest shall have. A user that several credentials name has the keys of all. */
export function agentCredentials(
  { accessCredentials = [] }: Spec,
  secrets: ReadonlyMap<string, SecretData>,
): AgentCredentials {
  const keys = new Map<string, readonly string[]>();
  const passwords = new Map<string, string>();
  for (const { sshPublicKey, userPassword } of accessCredentials) {
    const ofKeys = secrets.get(sshPublicKey?.source.secret?.secretName ?? '');
    for (const user of sshPublicKey?.propagationMethod.qemuGuestAgent?.users ?? [])
      if (ofKeys) keys.set(user, [...new Set([...(keys.get(user) ?? []), ...publicKeysOf(ofKeys)])]);
    const ofPasswords = secrets.get(userPassword?.source.secret?.secretName ?? '');
    if (ofPasswords && userPassword?.propagationMethod.qemuGuestAgent)
      for (const [user, value] of ofPasswords) passwords.set(user, new TextDecoder().decode(value).trim());
  }
  return { keys, passwords };
}

const BASIC_COMMANDS = [
  'guest-ping',
  'guest-get-time',
  'guest-info',
  'guest-shutdown',
  'guest-network-get-interfaces',
  'guest-get-fsinfo',
  'guest-get-host-name',
  'guest-get-users',
  'guest-get-timezone',
  'guest-get-osinfo',
];
const KEY_COMMANDS = ['guest-ssh-get-authorized-keys', 'guest-ssh-add-authorized-keys'];
const PASSWORD_COMMANDS = ['guest-set-user-password'];

/** Of all commands that anything here needs, those that an agent does not have, or has switched off. */
export const missingCommands = (enabled: ReadonlySet<string>): string[] =>
  [...BASIC_COMMANDS, ...KEY_COMMANDS, ...PASSWORD_COMMANDS].filter((name) => !enabled.has(name));

/** Why an agent that lacks these commands is not enough for this guest, in upstream's words; undefined where it is. */
export function unsupportedReason({ accessCredentials = [] }: Spec, missing: readonly string[]): string | undefined {
  const lacks = (commands: readonly string[]): boolean => commands.some((name) => missing.includes(name));
  if (lacks(BASIC_COMMANDS)) return "This guest agent doesn't support required basic commands";
  return lacksForCredentials({ accessCredentials }, missing);
}

/** The same, of what credentials need alone. */
export function lacksForCredentials(
  { accessCredentials = [] }: Pick<Spec, 'accessCredentials'>,
  missing: readonly string[],
): string | undefined {
  const lacks = (commands: readonly string[]): boolean => commands.some((name) => missing.includes(name));
  const has = (kind: 'sshPublicKey' | 'userPassword'): boolean =>
    accessCredentials.some((one) => one[kind]?.propagationMethod.qemuGuestAgent !== undefined);
  if (has('sshPublicKey') && lacks(KEY_COMMANDS))
    return "This guest agent doesn't support required public key commands";
  if (has('userPassword') && lacks(PASSWORD_COMMANDS))
    return "This guest agent doesn't support required password commands";
  return undefined;
}
