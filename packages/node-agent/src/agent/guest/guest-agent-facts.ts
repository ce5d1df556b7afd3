/**
 * What a guest agent tells, in the shapes of upstream's API. The guest may say anything: text is cut, lists are short,
 * what is of another type is left out.
 */
import type { AskGuestAgent } from '../../qmp/guest-agent.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';

/** Longest text taken from a guest. */
const MAX_TEXT = 256;
/** Longest list taken from a guest: interfaces, addresses, users, file systems, commands. */
const MAX_ITEMS = 256;

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_TEXT) : '');
const numberOf = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.slice(0, MAX_ITEMS).map(fieldsOf) : []);
/** Only the members that say something: upstream leaves empty ones out. */
const said = <T extends object>(members: T): Partial<T> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== '' && value !== 0)) as Partial<T>;

/** Of `guest-get-osinfo`. */
export function readOsInfo(value: unknown) {
  const os = fieldsOf(value);
  return said({
    name: textOf(os['name']),
    kernelRelease: textOf(os['kernel-release']),
    version: textOf(os['version']),
    prettyName: textOf(os['pretty-name']),
    versionId: textOf(os['version-id']),
    kernelVersion: textOf(os['kernel-version']),
    machine: textOf(os['machine']),
    id: textOf(os['id']),
  });
}

export type GuestOsInfo = ReturnType<typeof readOsInfo>;

/** Of `guest-network-get-interfaces`, without the loopback. */
export const readInterfaces = (value: unknown) =>
  listOf(value)
    .map((nic) => ({
      name: textOf(nic['name']),
      mac: textOf(nic['hardware-address']).toLowerCase(),
      addresses: listOf(nic['ip-addresses']).map((one) => ({
        address: textOf(one['ip-address']),
        type: one['ip-address-type'] === 'ipv6' ? ('ipv6' as const) : ('ipv4' as const),
      })),
    }))
    .filter(({ name }) => name !== 'lo' && name !== '');

export type GuestInterface = ReturnType<typeof readInterfaces>[number];

/** What one way of a card has carried since the guest was started. */
interface Traffic {
  readonly bytes: number;
  readonly packets: number;
  readonly errors: number;
  readonly dropped: number;
}
export interface CardTraffic {
  readonly mac: string;
  readonly rx: Traffic;
  readonly tx: Traffic;
}

/** The counters of `guest-network-get-interfaces`; of the cards that have some. */
export const readTraffic = (value: unknown): CardTraffic[] =>
  listOf(value).flatMap((nic) => {
    const counted = fieldsOf(nic['statistics']);
    if (Object.keys(counted).length === 0) return [];
    const way = (of: 'rx' | 'tx'): Traffic => ({
      bytes: numberOf(counted[`${of}-bytes`]),
      packets: numberOf(counted[`${of}-packets`]),
      errors: numberOf(counted[`${of}-errs`]),
      dropped: numberOf(counted[`${of}-dropped`]),
    });
    return [{ mac: textOf(nic['hardware-address']).toLowerCase(), rx: way('rx'), tx: way('tx') }];
  });

/** Averages of runnable processes, of `guest-get-load`. */
export function readLoad(value: unknown) {
  const { load1m, load5m, load15m } = fieldsOf(value);
  if (typeof load1m !== 'number') return undefined;
  return { oneMinute: numberOf(load1m), fiveMinutes: numberOf(load5m), fifteenMinutes: numberOf(load15m) };
}

export type GuestLoad = NonNullable<ReturnType<typeof readLoad>>;

/** Of `guest-get-users`. */
export const readUsers = (value: unknown) =>
  listOf(value).map((one) => ({
    userName: textOf(one['user']),
    ...said({ domain: textOf(one['domain']), loginTime: numberOf(one['login-time']) }),
  }));

/** Of `guest-get-fsinfo`. */
export const readFilesystems = (value: unknown) =>
  listOf(value).map((one) => {
    const disk = listOf(one['disk']).map((part) => ({
      ...said({ serial: textOf(part['serial']) }),
      busType: textOf(part['bus-type']),
    }));
    return {
      diskName: textOf(one['name']),
      mountPoint: textOf(one['mountpoint']),
      fileSystemType: textOf(one['type']),
      usedBytes: numberOf(one['used-bytes']),
      totalBytes: numberOf(one['total-bytes']),
      ...(disk.length > 0 && { disk }),
    };
  });

export type GuestFilesystem = ReturnType<typeof readFilesystems>[number];

/** An answer; undefined when this agent has no such command, or not for this guest. */
async function optional(ask: AskGuestAgent, command: string): Promise<unknown> {
  try {
    return await ask(command);
  } catch (error) {
    if (error instanceof QmpError && error.failure === 'refused') return undefined;
    throw error;
  }
}

const asking =
  <T>(command: string, read: (answer: unknown) => T) =>
  async (ask: AskGuestAgent): Promise<T> =>
    read(await optional(ask, command));

export const askUsers = asking('guest-get-users', readUsers);
export const askFilesystems = asking('guest-get-fsinfo', readFilesystems);
export const askInterfaces = asking('guest-network-get-interfaces', readInterfaces);
export const askTraffic = asking('guest-network-get-interfaces', readTraffic);
/** Agents before QEMU 10 have no such command. */
export const askLoad = asking('guest-get-load', readLoad);
export const askOsInfo = asking('guest-get-osinfo', readOsInfo);
/** `frozen`, or '' when the file systems can be written to, or nobody knows. */
export async function askFrozen(ask: AskGuestAgent): Promise<'frozen' | ''> {
  return (await optional(ask, 'guest-fsfreeze-status')) === 'frozen' ? 'frozen' : '';
}

/** Names of the commands that this agent has and takes. */
export async function askCommands(ask: AskGuestAgent): Promise<ReadonlySet<string>> {
  const info = fieldsOf(await ask('guest-info'));
  const enabled = listOf(info['supported_commands']).filter((one) => one['enabled'] === true);
  return new Set(enabled.map((one) => textOf(one['name'])));
}

/** All of it, as the subresource `guestosinfo` answers. */
export async function queryAll(ask: AskGuestAgent): Promise<Fields> {
  const agent = fieldsOf(await ask('guest-info'));
  const host = fieldsOf(await optional(ask, 'guest-get-host-name'));
  const zone = fieldsOf(await optional(ask, 'guest-get-timezone'));
  const supportedCommands = listOf(agent['supported_commands']).map((one) => ({
    name: textOf(one['name']),
    ...(one['enabled'] === true && { enabled: true }),
  }));
  const userList = await askUsers(ask);
  const disks = await askFilesystems(ask);
  const frozen = await askFrozen(ask);
  return {
    kind: 'VirtualMachineInstanceGuestAgentInfo',
    apiVersion: 'v1',
    guestAgentVersion: textOf(agent['version']),
    ...(supportedCommands.length > 0 && { supportedCommands }),
    ...said({ hostname: textOf(host['host-name']) }),
    os: await askOsInfo(ask),
    ...(zone['offset'] !== undefined && { timezone: `${textOf(zone['zone'])}, ${numberOf(zone['offset'])}` }),
    ...(userList.length > 0 && { userList }),
    fsInfo: { disks },
    ...said({ fsFreezeStatus: frozen }),
  };
}
