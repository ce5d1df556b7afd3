/**
 * Fields that the server fills in where a manifest leaves them out. Whoever declares one of them has it as declared; left
 * out, it stays as the server has it, and is no drift.
 */

export interface ServerField {
  readonly group: string;
  readonly kind: string;
  /** Names of fields from the object's root; `EACH` stands for every item of a list. */
  readonly path: readonly string[];
  /** Which items of a list, as a path of jq, where not every one of them is the server's. */
  readonly jq?: string;
  /** Why it is there: a clause for people. */
  readonly reason: string;
}

/** In a path: every item of a list. */
export const EACH = '*';

const TEMPLATE = ['spec', 'template', 'spec'] as const;
const DOMAIN = [...TEMPLATE, 'domain'] as const;
const TEMPLATE_NOTES = ['spec', 'template', 'metadata', 'annotations'] as const;
const VOLUMES = '.spec.template.spec.volumes[]?';
const IS_PLUGGED = '(.dataVolume.hotpluggable // .persistentVolumeClaim.hotpluggable) == true';

type Row = readonly [path: readonly string[], reason: string, jq?: string];

const MACHINE: readonly Row[] = [
  [['metadata', 'annotations', 'coracle.dev/firmware-identity'], 'how the firmware UUID came to be'],
  [['metadata', 'annotations', 'kubevirt.io/latest-observed-api-version'], 'written by the controllers of KubeVirt'],
  [['metadata', 'annotations', 'kubevirt.io/storage-observed-api-version'], 'written by the controllers of KubeVirt'],
  [['metadata', 'finalizers'], 'the controller takes the instance away first'],
  [[...TEMPLATE_NOTES, 'kubevirt.io/pci-topology-version'], 'devices keep their PCI addresses'],
  [[...TEMPLATE_NOTES, 'kubevirt.io/pci-interface-slot-count'], 'devices keep their PCI addresses'],
  [['spec', 'template', 'metadata', 'creationTimestamp'], 'a null that clients written in Go send'],
  [[...TEMPLATE, 'architecture'], 'default of the cluster, kept for the life of the machine'],
  [[...DOMAIN, 'machine', 'type'], 'default of the cluster, kept so that an upgrade changes no guest'],
  [[...DOMAIN, 'firmware', 'uuid'], 'identity of the guest: given at creation, or written back once'],
  [[...DOMAIN, 'firmware', 'serial'], 'identity of the guest: given at creation'],
  [[...DOMAIN, 'devices', 'interfaces', EACH, 'macAddress'], 'given by a pool of addresses, or by a restore'],
  [
    [...TEMPLATE, 'volumes', EACH],
    'plugged in through the API (virtctl addvolume)',
    `${VOLUMES} | select(${IS_PLUGGED})`,
  ],
  [
    [...DOMAIN, 'devices', 'disks', EACH],
    'the disk of a volume that was plugged in',
    `. as $vm | .spec.template.spec.domain.devices.disks[]? | select(.name as $name | [$vm | ${VOLUMES} | select(${IS_PLUGGED}) | .name] | index($name))`,
  ],
  [['spec', 'instancetype', 'revisionName'], 'the copy of the instance type in force, where KubeVirt writes it here'],
  [['spec', 'preference', 'revisionName'], 'the copy of the preference in force, where KubeVirt writes it here'],
  [['status'], 'what the controllers report'],
];

const CLAIM: readonly Row[] = [
  [['spec', 'volumeName'], 'the volume that the claim was bound to'],
  [['spec', 'storageClassName'], 'the default class at the time of creation'],
  [['spec', 'volumeMode'], 'default of the API'],
];

const rowsOf = (group: string, kind: string, rows: readonly Row[]): ServerField[] =>
  rows.map(([path, reason, jq]) => ({ group, kind, path, reason, ...(jq !== undefined && { jq }) }));

/** All of them, by kind. */
export const SERVER_FIELDS: readonly ServerField[] = [
  ...rowsOf('kubevirt.io', 'VirtualMachine', MACHINE),
  ...rowsOf('', 'PersistentVolumeClaim', CLAIM),
];

/**
 * The row that a field of an object lies in; undefined for one that users alone write. Items of lists are `EACH` in `path`.
 * Rows that are about some items of a list only are passed over.
 */
export const serverFieldAt = (group: string, kind: string, path: readonly string[]): ServerField | undefined =>
  SERVER_FIELDS.find(
    (row) =>
      row.group === group &&
      row.kind === kind &&
      row.jq === undefined &&
      row.path.length <= path.length &&
      row.path.every((name, at) => name === path[at]),
  );
