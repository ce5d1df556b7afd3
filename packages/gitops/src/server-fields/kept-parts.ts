/**
 * Server-side apply replaces a list without keys as a whole (interfaces, volumes and disks of machines are such lists), and
 * with it what the server or somebody through its API has put into it. Here these parts are carried over from the live
 * object into what is applied, so that a manifest that says nothing of them leaves them alone.
 */
import type { DeepReadonly, KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';

/**
 * Of machines whose manifest itself declares volumes that may be unplugged: their names, with commas. One that is named here
 * and no longer declared was taken out of the manifest, and is not kept.
 */
export const DECLARED_PLUGGABLE = 'coracle.dev/declared-pluggable-volumes';

/** What is read of a volume, a disk and an interface; the rest goes along. */
interface Volume {
  readonly name: string;
  readonly dataVolume?: { readonly hotpluggable?: boolean };
  readonly persistentVolumeClaim?: { readonly hotpluggable?: boolean };
}
interface Disk {
  readonly name: string;
}
interface Interface {
  readonly name: string;
  readonly macAddress?: string;
}
interface Spec {
  readonly volumes?: readonly Volume[];
  readonly domain?: {
    readonly devices?: { readonly disks?: readonly Disk[]; readonly interfaces?: readonly Interface[] };
  };
}
interface VirtualMachine {
  readonly spec: { readonly template: { readonly spec: Spec } };
}

/** True for objects of which parts are carried over: they are applied to the state that was read, and to no other. */
export const hasKeptParts = ({ apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>): boolean =>
  kind === 'VirtualMachine' && apiVersion.startsWith('kubevirt.io/');

/**
 * A declared object with the parts of the live one that are the server's: MAC addresses of interfaces that are declared
 * without one, and volumes that were plugged in, with their disks. Returns the same object where there is nothing to carry
 * over. Lists of a shape that the API will refuse are left as they are.
 */
export function withKeptParts<T extends KubeObject>(declared: T, live: ReadonlyObject | undefined): T {
  if (!hasKeptParts(declared)) return declared;
  const spec = specOf(declared);
  if (spec === undefined) return declared;
  const there = live && specOf(live);
  const volumes = listOf<Volume>(spec.volumes);
  const names = (volumes ?? []).filter(isPluggable).map(({ name }) => name);
  const next = there === undefined ? {} : keptIn(spec, there, declaredBefore(live));
  const annotations = names.length === 0 ? undefined : { [DECLARED_PLUGGABLE]: names.join(',') };
  if (Object.keys(next).length === 0 && annotations === undefined) return declared;
  const { devices, ...changed } = next;
  const vm = declared as unknown as VirtualMachine;
  const domain = { ...spec.domain, ...(devices && { devices: { ...spec.domain?.devices, ...devices } }) };
  return {
    ...declared,
    metadata: {
      ...declared.metadata,
      ...(annotations && { annotations: { ...declared.metadata.annotations, ...annotations } }),
    },
    spec: {
      ...vm.spec,
      template: { ...vm.spec.template, spec: { ...spec, ...changed, ...(devices && { domain }) } },
    },
  };
}

interface Kept {
  volumes?: readonly Volume[];
  devices?: { interfaces?: readonly Interface[]; disks?: readonly Disk[] };
}

function keptIn(spec: Spec, there: DeepReadonly<Spec>, before: ReadonlySet<string>): Kept {
  const kept: Kept = {};
  const volumes = listOf<Volume>(spec.volumes);
  const declared = new Set((volumes ?? []).map(({ name }) => name));
  const plugged = (listOf<Volume>(there.volumes) ?? []).filter(
    (volume) => isPluggable(volume) && !declared.has(volume.name) && !before.has(volume.name),
  );
  if (volumes && plugged.length > 0) kept.volumes = [...volumes, ...plugged];
  const disks = listOf<Disk>(spec.domain?.devices?.disks);
  const names = new Set(plugged.map(({ name }) => name));
  const more = (listOf<Disk>(there.domain?.devices?.disks) ?? []).filter(
    ({ name }) => names.has(name) && !disks?.some((disk) => disk.name === name),
  );
  if (disks && more.length > 0) kept.devices = { disks: [...disks, ...more] };
  const interfaces = listOf<Interface>(spec.domain?.devices?.interfaces);
  const given = new Map(
    (listOf<Interface>(there.domain?.devices?.interfaces) ?? []).map(({ name, macAddress }) => [name, macAddress]),
  );
  if (interfaces?.some(({ name, macAddress }) => !macAddress && given.get(name)))
    kept.devices = {
      ...kept.devices,
      interfaces: interfaces.map((nic) => {
        const macAddress = nic.macAddress || given.get(nic.name);
        return macAddress ? { ...nic, macAddress } : nic;
      }),
    };
  return kept;
}

const specOf = (object: ReadonlyObject): Spec | undefined =>
  (object as unknown as Partial<VirtualMachine>).spec?.template?.spec;

/** What is declared may be anything: a list is one whose items are objects. */
const listOf = <T>(value: unknown): readonly T[] | undefined =>
  Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null)
    ? (value as readonly T[])
    : undefined;

const isPluggable = ({ dataVolume, persistentVolumeClaim }: Volume): boolean =>
  (dataVolume?.hotpluggable ?? persistentVolumeClaim?.hotpluggable) === true;

const declaredBefore = (live: ReadonlyObject | undefined): ReadonlySet<string> =>
  new Set((live?.metadata.annotations?.[DECLARED_PLUGGABLE] ?? '').split(',').filter((name) => name !== ''));

/**
 * Two states of an object without what the server, or somebody through its API, may change in them whatever is declared:
 * volumes that were plugged in, with their disks, and a MAC address that an interface is given.
 */
export function withoutKeptParts<T extends ReadonlyObject>(before: T, after: T): readonly [T, T] {
  if (!hasKeptParts(before)) return [before, after];
  const declared = declaredBefore(before);
  const old = new Map(
    (listOf<Interface>(specOf(before)?.domain?.devices?.interfaces) ?? []).map((nic) => [nic.name, nic.macAddress]),
  );
  const strip = (object: T): T => {
    const spec = specOf(object);
    const volumes = listOf<Volume>(spec?.volumes) ?? [];
    const plugged = new Set(
      volumes.filter((one) => isPluggable(one) && !declared.has(one.name)).map(({ name }) => name),
    );
    const disks = listOf<Disk>(spec?.domain?.devices?.disks);
    const interfaces = listOf<Interface>(spec?.domain?.devices?.interfaces);
    if (!spec || (plugged.size === 0 && !interfaces)) return object;
    const devices = {
      ...spec.domain?.devices,
      ...(disks && { disks: disks.filter(({ name }) => !plugged.has(name)) }),
      ...(interfaces && {
        interfaces: interfaces.map(({ macAddress, ...nic }) =>
          macAddress && old.get(nic.name) ? { ...nic, macAddress } : nic,
        ),
      }),
    };
    const { spec: whole } = object as unknown as VirtualMachine;
    const rest = {
      ...spec,
      ...(spec.volumes && { volumes: volumes.filter(({ name }) => !plugged.has(name)) }),
      domain: { ...spec.domain, devices },
    };
    return { ...object, spec: { ...whole, template: { ...whole.template, spec: rest } } };
  };
  return [strip(before), strip(after)];
}
