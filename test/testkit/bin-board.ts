/** A control plane with everything that deleted machines and their disks have to do with, and short words for tests. */
import { CLAIMS, type Row, type StoragePlane, startStoragePlane, VOLUMES } from './storage-plane.ts';

export const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
export const SECRETS = '/api/v1/namespaces/default/secrets';
export const RECORDS = '/apis/coracle.dev/v1alpha1/namespaces/default/deletedvirtualmachines';
export const CONTENTS = '/apis/coracle.dev/v1alpha1/deletedvirtualmachinecontents';
export const UUID = (n: number): string => `aaaaaaaa-0000-4000-8000-${String(n).padStart(12, '0')}`;

export interface BinBoard extends StoragePlane {
  /** A halted machine that owns one claim (`NAME-disk`, bound) and one Secret (`NAME-login`). */
  machine(
    name: string,
    more?: { readonly uuid?: string; readonly metadata?: object; readonly spec?: object },
  ): Promise<Row>;
  /** Deletes the machine and waits until it, its claim and its Secret are gone. */
  remove(name: string): Promise<void>;
  /** The newest record of a machine of that name. */
  record(name: string): Promise<Row>;
  /** Asks for it as `coracle undelete` does. */
  undelete(name: string, request?: object): Promise<Row>;
  gone(path: string): Promise<Row>;
  /** Handle of the volume of a bound claim. */
  handle(claim: string): Promise<string>;
  /** The bin is empty. */
  emptied(): Promise<void>;
  setWindow(value: string | null): Promise<void>;
}

const CONTROLLERS = [
  'bin',
  'vm',
  'garbage-collector-controller',
  'namespace-controller',
  'resourcequota-controller',
  'local-volume-sweeper',
];

/** Starts one; `controllers` replaces those beside storage. */
export async function startBinBoard(controllers: readonly string[] = CONTROLLERS): Promise<BinBoard> {
  const plane = await startStoragePlane(controllers);
  const gone = (path: string) => plane.settled(path, (object) => Object.keys(object).length === 0);
  let requests = 0;
  const board: BinBoard = {
    ...plane,
    gone,
    async machine(name, { uuid, metadata = {}, spec = {} } = {}) {
      await plane.claim(`${name}-disk`);
      const vm = await plane.admin(`POST ${VMS}`, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name, labels: { app: name }, ...metadata },
        spec: {
          runStrategy: 'Halted',
          template: {
            spec: {
              domain: {
                firmware: { ...(uuid && { uuid }), serial: `serial-${name}` },
                devices: { interfaces: [{ name: 'default', masquerade: {}, macAddress: '02:00:00:00:00:01' }] },
                memory: { guest: '64Mi' },
              },
              networks: [{ name: 'default', pod: {} }],
              volumes: [
                { name: 'disk', persistentVolumeClaim: { claimName: `${name}-disk` } },
                { name: 'login', cloudInitNoCloud: { secretRef: { name: `${name}-login` } } },
              ],
            },
          },
          ...spec,
        },
      });
      const ownerReferences = [
        { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid: vm.metadata.uid, controller: true },
      ];
      await plane.admin(`POST ${SECRETS}`, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `${name}-login`, ownerReferences },
        stringData: { userdata: `secret of ${name}` },
      });
      await plane.admin(`PATCH ${CLAIMS}/${name}-disk`, { metadata: { ownerReferences } });
      await plane.settled(`${CLAIMS}/${name}-disk`, ({ status }) => status?.phase === 'Bound');
      return plane.settled(`${VMS}/${name}`, ({ metadata: { finalizers } }) => finalizers?.length > 0);
    },
    async remove(name) {
      await plane.admin(`DELETE ${VMS}/${name}`);
      for (const path of [`${VMS}/${name}`, `${CLAIMS}/${name}-disk`, `${SECRETS}/${name}-login`]) await gone(path);
    },
    async record(name) {
      const { items } = await plane.settled(RECORDS, (list) =>
        list['items']?.some(({ spec }: Row) => spec.virtualMachine.name === name),
      );
      return items
        .filter(({ spec }: Row) => spec.virtualMachine.name === name)
        .sort((a: Row, b: Row) => (a['spec'].deletedAt < b['spec'].deletedAt ? 1 : -1))[0];
    },
    async undelete(name, request = {}) {
      const { metadata } = await board.record(name);
      return plane.admin(`PATCH ${RECORDS}/${metadata.name}`, {
        spec: { undelete: { id: `request-${++requests}`, ...request } },
      });
    },
    async handle(claim) {
      const { spec } = await plane.admin(`GET ${CLAIMS}/${claim}`);
      return (await plane.admin(`GET ${VOLUMES}/${spec.volumeName}`)).spec.csi.volumeHandle;
    },
    async emptied() {
      await plane.settled(CONTENTS, ({ items }) => items?.length === 0);
    },
    async setWindow(value) {
      await plane.admin('PATCH /apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt', {
        metadata: { annotations: { 'coracle.dev/undelete-window': value } },
      });
    },
  };
  return board;
}
