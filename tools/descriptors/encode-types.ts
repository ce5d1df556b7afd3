/** Encodes the facts about built-in types into the compact text of `types.generated.json`; the grammar is in README.md. */

export interface PropertyFacts {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly items?: PropertyFacts;
  readonly additionalProperties?: PropertyFacts;
  readonly protobuf?: number;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-patch-merge-key'?: string;
  readonly 'x-kubernetes-patch-strategy'?: string;
}

export interface TypeFacts extends PropertyFacts {
  readonly properties?: Readonly<Record<string, PropertyFacts>>;
  readonly required?: readonly string[];
  readonly protobufInline?: number;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

export interface EncodedTypes {
  /** Short alias -> package: `core` -> `io.k8s.api.core.v1`. */
  readonly packages: Readonly<Record<string, string>>;
  /** Alias -> type name -> type text. */
  readonly types: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const REF = '#/definitions/';

/** Definitions whose JSON form is not their wire form: kept by kind, not by fields. */
const SCALARS: Readonly<Record<string, string>> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': 'quantity',
  'io.k8s.apimachinery.pkg.apis.meta.v1.Time': 'time',
  'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime': 'microtime',
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': 'intorstring',
};

/** Objects without described fields that may hold any field; others without fields are empty objects. */
const OPEN_OBJECTS = new Set(['RawExtension', 'FieldsV1', 'Patch']);

/**
 * Numbers inside messages that JSON inlines and that are no definition of their own. Go embeds these structs; their
 * protobuf tags stand in k8s.io/api (core/v1 VolumeSource, PersistentVolumeSource, ProbeHandler; networking/v1
 * IngressRuleValue; resource/v1 DeviceConfiguration; admissionregistration/v1 Rule; LocalObjectReference).
 */
const VOLUME_SOURCE =
  'hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO projected storageos csi ephemeral image';
const PERSISTENT_VOLUME_SOURCE =
  'gcePersistentDisk awsElasticBlockStore hostPath glusterfs nfs rbd iscsi cinder cephfs fc flocker flexVolume azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO local storageos csi';

const numbered = (names: string): Map<string, number[]> => new Map(names.split(' ').map((name, i) => [name, [i + 1]]));
const RULE = numbered('apiGroups apiVersions resources scope');

/** The inlined message of a type, by the type's short name; the default is LocalObjectReference. */
const INLINED: Readonly<Record<string, Map<string, number[]>>> = {
  Volume: numbered(VOLUME_SOURCE),
  PersistentVolumeSpec: numbered(PERSISTENT_VOLUME_SOURCE),
  Probe: numbered('exec httpGet tcpSocket grpc'),
  IngressRule: numbered('http'),
  DeviceAllocationConfiguration: numbered('opaque'),
  DeviceClaimConfiguration: numbered('opaque'),
  DeviceClassConfiguration: numbered('opaque'),
  RuleWithOperations: RULE,
  NamedRuleWithOperations: new Map([
    ['operations', [1]],
    ...[...RULE].map(([k, v]): [string, number[]] => [k, [2, ...v]]),
  ]),
};
const LOCAL_OBJECT_REFERENCE = numbered('name');

/** Defaults that are part of a type because list keys need them (apiserver notes, section 17). */
const DEFAULTS: Readonly<Record<string, string>> = { 'ContainerPort.protocol': 'TCP', 'ServicePort.protocol': 'TCP' };

/** Encodes every definition. The result depends on the facts only, not on their order. */
export function encodeTypes(facts: Readonly<Record<string, TypeFacts>>): EncodedTypes {
  const names = Object.keys(facts).sort();
  const aliases = packageAliases(names);
  const types: Record<string, Record<string, string>> = {};
  for (const name of names) {
    const { pkg, short } = splitName(name);
    const alias = aliases.get(pkg) ?? pkg;
    types[alias] ??= {};
    types[alias][short] = encodeType(name, { facts, aliases });
  }
  return { packages: Object.fromEntries([...aliases].map(([pkg, alias]) => [alias, pkg])), types };
}

function splitName(name: string): { pkg: string; short: string } {
  const dot = name.lastIndexOf('.');
  return { pkg: name.slice(0, dot), short: name.slice(dot + 1) };
}

function packageAliases(names: readonly string[]): Map<string, string> {
  const aliases = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of names) {
    const { pkg } = splitName(name);
    if (aliases.has(pkg)) continue;
    const parts = pkg.split('.');
    const last = parts.at(-1) ?? '';
    const version = /^v\d/.test(last);
    const base = (version ? parts.at(-2) : last) ?? last;
    const alias = taken.has(base) ? `${base}${last}` : base;
    taken.add(alias);
    aliases.set(pkg, alias);
  }
  return aliases;
}

interface EncodeContext {
  readonly facts: Readonly<Record<string, TypeFacts>>;
  readonly aliases: ReadonlyMap<string, string>;
}

function encodeType(name: string, context: EncodeContext): string {
  const type = context.facts[name];
  if (type === undefined) throw new Error(`type ${name} is named but not described`);
  const scalar = SCALARS[name];
  if (scalar !== undefined) return `!${scalar}`;
  const { pkg, short } = splitName(name);
  if (type.properties === undefined && type.type !== 'object') return '!any';
  if (OPEN_OBJECTS.has(short)) return '!object';
  const head =
    (type['x-kubernetes-map-type'] === 'atomic' ? 't' : '') + encodeGvks(type['x-kubernetes-group-version-kind'], name);
  const fields = Object.keys(type.properties ?? {})
    .sort()
    .map((field) => encodeField({ field, short, pkg, type, context }));
  return `${head}|${fields.join(' ')}`;
}

/** One GVK as `#group/version/kind`; the options kinds that every group repeats as `#*kind`. */
function encodeGvks(gvks: TypeFacts['x-kubernetes-group-version-kind'], name: string): string {
  if (gvks === undefined) return '';
  const [first] = gvks;
  if (first === undefined) return '';
  if (gvks.length === 1) return `#${first.group}/${first.version}/${first.kind}`;
  if (gvks.some((g) => g.kind !== first.kind)) throw new Error(`type ${name} has several kinds`);
  return `#*${first.kind}`;
}

interface FieldContext {
  readonly field: string;
  readonly short: string;
  readonly pkg: string;
  readonly type: TypeFacts;
  readonly context: EncodeContext;
}

function encodeField(at: FieldContext): string {
  const property = at.type.properties?.[at.field];
  if (property === undefined) throw new Error(`no property ${at.field}`);
  const required = at.type.required?.includes(at.field) ? '!' : '';
  const strategy = property['x-kubernetes-patch-strategy'];
  const mergeKey = property['x-kubernetes-patch-merge-key'];
  const listType = property['x-kubernetes-list-type'];
  const mapType = property['x-kubernetes-map-type'];
  const preset = DEFAULTS[`${at.short}.${at.field}`];
  const mods = [
    listType === 'atomic' ? 'a' : listType === 'set' ? 's' : undefined,
    listType === 'map' ? `m:${property['x-kubernetes-list-map-keys']?.join(',')}` : undefined,
    mergeKey === undefined ? undefined : `k:${mergeKey}`,
    strategy === undefined ? undefined : `p:${strategy}`,
    mapType === undefined ? undefined : `t:${mapType}`,
    preset === undefined ? undefined : `d:${preset}`,
  ].filter((mod) => mod !== undefined);
  const number = protoNumber(at, property);
  return `${at.field}${required}:${[encodeKind(property, at), ...mods].join(';')}${number === '' ? '' : `=${number}`}`;
}

function encodeKind(property: PropertyFacts, at: FieldContext): string {
  if (property.$ref !== undefined) {
    const { pkg, short } = splitName(property.$ref.slice(REF.length));
    return pkg === at.pkg ? `@${short}` : `@${at.context.aliases.get(pkg)}.${short}`;
  }
  switch (property.type) {
    case 'array':
      return `[${encodeKind(property.items ?? {}, at)}`;
    case 'object':
      return property.additionalProperties === undefined ? 'o' : `{${encodeKind(property.additionalProperties, at)}`;
    case 'string':
      return property.format === 'byte' ? 'y' : 's';
    case 'integer':
      return property.format === 'int64' ? 'l' : 'i';
    case 'number':
      return 'd';
    case 'boolean':
      return 'b';
    default:
      throw new Error(`${at.pkg}.${at.short}.${at.field}: no encoding for ${JSON.stringify(property)}`);
  }
}

/** `5`, or `2.1` for field 1 of the message that field 2 inlines; '' for fields that are not on the wire. */
function protoNumber(at: FieldContext, property: PropertyFacts): string {
  if (property.protobuf !== undefined) return String(property.protobuf);
  if (at.type.protobufInline === undefined) return '';
  const container = at.context.facts[`${at.pkg}.Container`]?.properties?.[at.field]?.protobuf;
  const inner =
    at.short === 'EphemeralContainer'
      ? container === undefined
        ? undefined
        : [container]
      : (INLINED[at.short] ?? LOCAL_OBJECT_REFERENCE).get(at.field);
  if (inner === undefined) throw new Error(`${at.pkg}.${at.short}.${at.field}: no number inside the inlined message`);
  return [at.type.protobufInline, ...inner].join('.');
}
