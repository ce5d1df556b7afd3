/** The manifest that `coracle create` makes: a VirtualMachine in KubeVirt's own terms. Pure. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import type { VirtualMachine } from '@coracle/kubevirt/kinds/kinds';
import { HOST_PORTS_ANNOTATION } from '@coracle/kubevirt/rules/machine/host-ports';
import { isMap, isSeq, parseDocument, stringify } from 'yaml';
import { UsageError } from '../command.ts';

/** What is forwarded of a guest whose spec declares no port. */
const USUAL_PORTS = [22, 80];

/** Where the root disk comes from. */
export type RootDisk =
  /** Made anew from the image at each start. */
  | { readonly kind: 'container-disk'; readonly image: string }
  /** A claim filled once, by a DataVolume of the machine. `size` is a quantity. */
  | {
      readonly kind: 'data-volume';
      readonly source: { readonly http: string } | { readonly registry: string };
      readonly size: string;
    }
  /** The same, as a copy of what a DataSource leads to; as large as that without a size. */
  | {
      readonly kind: 'data-volume';
      readonly source: { readonly dataSource: ObjectKey };
      readonly size: string | undefined;
    };

export interface CreateOptions {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly root: RootDisk;
  readonly cpus: number | undefined;
  /** A quantity. */
  readonly memory: string | undefined;
  readonly instancetype: string | undefined;
  readonly preference: string | undefined;
  /** What cloud-init is given, whole. */
  readonly userData: string;
  /** Ports of 127.0.0.1 on the machine's node that lead to the guest. */
  readonly ports: readonly PublishedPort[];
}

/** A port of the host and the guest's behind it. */
export interface PublishedPort {
  readonly host: number;
  readonly guest: number;
  readonly protocol: 'tcp' | 'udp';
}

/** Reads `2222:22` and `5353:53/udp`, each port of the host once. Throws UsageError. */
export function readPublished(texts: readonly string[]): PublishedPort[] {
  const ports = texts.map(readPort);
  const taken = new Set<string>();
  for (const { host, protocol } of ports) {
    if (taken.has(`${host}/${protocol}`)) throw new UsageError(`-p gives port ${host} of this host twice`);
    taken.add(`${host}/${protocol}`);
  }
  return ports;
}

function readPort(text: string): PublishedPort {
  const [, host, guest, protocol = 'tcp'] = /^(\d{1,5}):(\d{1,5})(?:\/(tcp|udp))?$/i.exec(text) ?? [];
  const isPort = (port: string | undefined): boolean => Number(port) >= 1 && Number(port) <= 65_535;
  if (!isPort(host) || !isPort(guest)) throw new UsageError(`-p takes HOST:GUEST, such as 2222:22, not "${text}"`);
  return { host: Number(host), guest: Number(guest), protocol: protocol.toLowerCase() === 'udp' ? 'udp' : 'tcp' };
}

/** Builds it. */
export function machineManifest(options: CreateOptions): VirtualMachine {
  const { name, namespace, root, cpus, memory, instancetype, preference, userData, ports } = options;
  const claim = `${name}-root`;
  const bus = preference === undefined ? { bus: 'virtio' } : {};
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    spec: {
      runStrategy: 'Always',
      ...(instancetype !== undefined && { instancetype: matcher('Instancetype', instancetype) }),
      ...(preference !== undefined && { preference: matcher('Preference', preference) }),
      ...(root.kind === 'data-volume' && { dataVolumeTemplates: [dataVolume(claim, root)] }),
      template: {
        ...(ports.length > 0 && {
          metadata: { annotations: { [HOST_PORTS_ANNOTATION]: ports.map(publishedText).join(',') } },
        }),
        spec: {
          domain: {
            ...(cpus !== undefined && { cpu: { cores: cpus } }),
            ...(memory !== undefined && { memory: { guest: memory } }),
            devices: {
              disks: [
                { name: 'root', disk: { ...bus } },
                { name: 'cloudinit', disk: { ...bus } },
              ],
              interfaces: [{ name: 'default', masquerade: {}, ...declaredPorts(ports) }],
            },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: [
            root.kind === 'data-volume'
              ? { name: 'root', dataVolume: { name: claim } }
              : { name: 'root', containerDisk: { image: root.image } },
            { name: 'cloudinit', cloudInitNoCloud: { userData } },
          ],
        },
      },
    },
  } as VirtualMachine;
}

const publishedText = ({ host, guest, protocol }: PublishedPort): string =>
  `${host}:${guest}${protocol === 'udp' ? '/udp' : ''}`;

/** A guest answers by UDP for ports of its spec alone; once one is declared there, those usual without are to be declared too. */
function declaredPorts(ports: readonly PublishedPort[]): object {
  const udp = new Set(ports.filter(({ protocol }) => protocol === 'udp').map(({ guest }) => guest));
  if (udp.size === 0) return {};
  const usual = USUAL_PORTS.map((port) => ({ port }));
  return { ports: [...usual, ...[...udp].map((port) => ({ port, protocol: 'UDP' }))] };
}

/** `NAME`, `cluster/NAME` or `namespaced/NAME`, whose kind is written out then. */
function matcher(kind: 'Instancetype' | 'Preference', text: string): { kind?: string; name: string } {
  const [, scope, name = ''] = /^(?:(cluster|namespaced)\/)?([^/]+)$/.exec(text) ?? [];
  if (name === '')
    throw new UsageError(
      `--${kind.toLowerCase()} takes NAME, or namespaced/NAME for one of the namespace, not "${text}"`,
    );
  return scope === 'namespaced' ? { kind: `VirtualMachine${kind}`, name } : { name };
}

const dataVolume = (name: string, { source, size }: Extract<RootDisk, { kind: 'data-volume' }>) => ({
  metadata: { name },
  spec: {
    ...('dataSource' in source
      ? { sourceRef: { kind: 'DataSource', ...source.dataSource } }
      : { source: 'http' in source ? { http: { url: source.http } } : { registry: { url: source.registry } } }),
    storage: size === undefined ? {} : { resources: { requests: { storage: size } } },
  },
});

/**
 * A size with its unit as a quantity: `2G`, `512MiB`, `1.5gi`. A bare number, and `m`, which is a thousandth in Kubernetes, say
 * what people mean elsewhere only with a unit. Throws UsageError.
 */
export function readSize(text: string, flag: string): string {
  const [, number, unit = '', binary] = /^(\d+(?:\.\d+)?) ?([kmgt])(i?)b?$/i.exec(text) ?? [];
  if (number === undefined || Number(number) === 0)
    throw new UsageError(`--${flag} takes a size with its unit, such as 512Mi or 2Gi, not "${text}"`);
  const letter = unit.toUpperCase();
  if (Number(number) * (binary ? 1024 : 1000) ** ('KMGT'.indexOf(letter) + 1) > Number.MAX_SAFE_INTEGER)
    throw new UsageError(`--${flag} takes less than 8192Ti, not "${text}"`);
  return `${number}${binary ? `${letter}i` : letter === 'K' ? 'k' : letter}`;
}

/** The user data of a machine without any of its own. */
export function cloudConfig(given: { readonly user: string | undefined; readonly keys: readonly string[] }): string {
  return `#cloud-config\n${stringify(
    { ...(given.user !== undefined && { user: given.user }), ssh_authorized_keys: given.keys },
    { lineWidth: 0 },
  )}`;
}

/**
 * The user's own data with the keys in it. Undefined when it is no #cloud-config, which keys can be written into; a `user` or
 * `users` of its own stays. Throws UsageError when it is no YAML.
 */
export function withKeys(
  text: string,
  given: { readonly user: string | undefined; readonly keys: readonly string[] },
): string | undefined {
  if (!text.startsWith('#cloud-config')) return undefined;
  if (given.keys.length === 0) return text;
  const document = parseDocument(text);
  const [problem] = document.errors;
  if (problem) throw new UsageError(`--cloud-init: ${problem.message.split('\n')[0]!.replace(/:$/, '')}`);
  if (document.contents !== null && !isMap(document.contents))
    throw new UsageError('--cloud-init: a #cloud-config is a map of keys');
  const present = document.get('ssh_authorized_keys');
  if (isSeq(present)) for (const key of given.keys) present.add(key);
  else document.set('ssh_authorized_keys', given.keys);
  if (given.user !== undefined && !document.has('user') && !document.has('users')) document.set('user', given.user);
  const written = document.toString({ lineWidth: 0 });
  return written.startsWith('#cloud-config') ? written : `#cloud-config\n${written}`;
}
