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

export interface GuestOsInfo {
  readonly name?: string;
  readonly kernelRelease?: string;
  readonly version?: string;
  readonly prettyName?: string;
  readonly versionId?: string;
  readonly kernelVersion?: string;
  readonly machine?: string;
  readonly id?: string;
}
export interface GuestInterface {
  readonly name: string;
  readonly mac: string;
  readonly addresses: readonly { readonly address: string; readonly type: 'ipv4' | 'ipv6' }[];
}
export interface GuestUser {
  readonly userName: string;
  readonly domain?: string;
  readonly loginTime?: number;
}
export interface GuestFilesystem {
  readonly diskName: string;
  readonly mountPoint: string;
  readonly fileSystemType: string;
  readonly usedBytes: number;
  readonly totalBytes: number;
  readonly disk?: readonly { readonly serial?: string; readonly busType: string }[];
}

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
export function readOsInfo(value: unknown): GuestOsInfo {
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

/** Of `guest-network-get-interfaces`, without the loopback. */
export const readInterfaces = (value: unknown): GuestInterface[] =>
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

/** What one way of a card has carried since the guest was started. */
export interface Traffic {
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

/** Averages of runnable processes. */
export interface GuestLoad {
  readonly oneMinute: number;
  readonly fiveMinutes: number;
  readonly fifteenMinutes: number;
}

/** Of `guest-get-load`. */
export function readLoad(value: unknown): GuestLoad | undefined {
  const load = fieldsOf(value);
  return typeof load['load1m'] !== 'number'
    ? undefined
    : {
        oneMinute: numberOf(load['load1m']),
        fiveMinutes: numberOf(load['load5m']),
        fifteenMinutes: numberOf(load['load15m']),
      };
}

/** Of `guest-get-users`. */
export const readUsers = (value: unknown): GuestUser[] =>
  listOf(value).map((one) => ({
    userName: textOf(one['user']),
    ...said({ domain: textOf(one['domain']), loginTime: numberOf(one['login-time']) }),
  }));

/** Of `guest-get-fsinfo`. */
export const readFilesystems = (value: unknown): GuestFilesystem[] =>
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

/** An answer; undefined when this agent has no such command, or not for this guest. */
async function optional(ask: AskGuestAgent, command: string): Promise<unknown> {
  try {
    return await ask(command);
  } catch (error) {
    if (error instanceof QmpError && error.failure === 'refused') return undefined;
    throw error;
  }
}

export const askUsers = async (ask: AskGuestAgent): Promise<GuestUser[]> =>
  readUsers(await optional(ask, 'guest-get-users'));
export const askFilesystems = async (ask: AskGuestAgent): Promise<GuestFilesystem[]> =>
  readFilesystems(await optional(ask, 'guest-get-fsinfo'));
export const askInterfaces = async (ask: AskGuestAgent): Promise<GuestInterface[]> =>
  readInterfaces(await optional(ask, 'guest-network-get-interfaces'));
export const askTraffic = async (ask: AskGuestAgent): Promise<CardTraffic[]> =>
  readTraffic(await optional(ask, 'guest-network-get-interfaces'));
/** Agents before QEMU 10 have no such command. */
export const askLoad = async (ask: AskGuestAgent): Promise<GuestLoad | undefined> =>
  readLoad(await optional(ask, 'guest-get-load'));
export const askOsInfo = async (ask: AskGuestAgent): Promise<GuestOsInfo> =>
  readOsInfo(await optional(ask, 'guest-get-osinfo'));
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
