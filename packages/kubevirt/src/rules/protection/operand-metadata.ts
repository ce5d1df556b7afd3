/**
 * What ssp-operator keeps in the metadata of the objects that it installs, its operands: labels, and who asked for them.
 * Rules: internal/common (labels.go, owner.go, resource.go) and operator-lib's owner annotations.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly, ObjectKey, ObjectMeta } from '@coracle/apimachinery/meta/object';

/** `namespace/name` of the object that asked: an object of a namespace cannot own one of the cluster. */
const OWNER = 'operator-sdk/primary-resource';
const OWNER_TYPE = 'operator-sdk/primary-resource-type';
const SSP_TYPE = 'SSP.ssp.kubevirt.io';
const PART_OF = 'app.kubernetes.io/part-of';
const VERSION = 'app.kubernetes.io/version';

/** Name and component of an operand, as its labels give them. */
export interface Operand {
  readonly name: string;
  readonly component: string;
}

/** The object that asks for operands; undefined where nobody does. */
export type OperandOwner = { readonly metadata: DeepReadonly<ObjectMeta> } | undefined;

/**
 * The metadata that an operand should have: the labels are there, the annotations name `owner` (or no SSP object), no
 * object owns it. Everything else stays as users have it. The very object passed in when nothing is to change.
 */
export function operandMetadata(
  metadata: DeepReadonly<ObjectMeta>,
  { name, component }: Operand,
  owner: OperandOwner,
): DeepReadonly<ObjectMeta> {
  const { labels: found = {}, annotations: noted = {}, ownerReferences: _cleared, ...rest } = metadata;
  const labels: Record<string, string> = { ...found };
  const annotations: Record<string, string> = { ...noted };
  if (!owner && isOfSsp(metadata)) for (const key of [PART_OF, VERSION]) delete labels[key];
  Object.assign(labels, {
    ...copied(owner?.metadata.labels),
    'app.kubernetes.io/name': name,
    'app.kubernetes.io/component': component,
    'app.kubernetes.io/managed-by': 'ssp-operator',
  });
  if (owner) Object.assign(annotations, ownerAnnotations(owner.metadata));
  else if (isOfSsp(metadata)) for (const key of [OWNER, OWNER_TYPE]) delete annotations[key];
  const wanted = { ...rest, labels, ...(Object.keys(annotations).length > 0 && { annotations }) };
  return deepEqual(wanted, metadata) ? metadata : wanted;
}

/** Whether the annotations say that this SSP object asked for the operand; any SSP object where none is given. */
export function isOfSsp(metadata: DeepReadonly<ObjectMeta>, owner?: OperandOwner): boolean {
  const { annotations = {} } = metadata;
  if (annotations[OWNER_TYPE] !== SSP_TYPE) return false;
  return !owner || annotations[OWNER] === ownerAnnotations(owner.metadata)[OWNER];
}

/** The SSP object that the annotations name. */
export function sspKeyOf({ annotations = {} }: DeepReadonly<ObjectMeta>): ObjectKey {
  const [namespace = '', name = ''] = (annotations[OWNER] ?? '').split('/');
  return { namespace, name };
}

const ownerAnnotations = ({ namespace = '', name = '' }: DeepReadonly<ObjectMeta>): Record<string, string> => ({
  [OWNER]: `${namespace}/${name}`,
  [OWNER_TYPE]: SSP_TYPE,
});

/** Those labels of the SSP object that its operands carry as well. */
const copied = (labels: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries([PART_OF, VERSION].flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]]])));
