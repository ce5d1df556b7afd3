/**
 * Subsets of Endpoints in their shortest form: ports that the same addresses offer stand in one subset (RepackSubsets of
 * pkg/api/v1/endpoints). What users write need not have it.
 */
import type { EndpointSubset } from '../../api/kinds/builtin/types.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';

type Subset = DeepReadonly<EndpointSubset>;
type Address = NonNullable<Subset['addresses']>[number];
type Port = NonNullable<Subset['ports']>[number];

interface Offered {
  /** Undefined where addresses are given without any. */
  readonly port: Port | undefined;
  /** By address; false where one subset calls it not ready. */
  readonly ready: Map<string, boolean>;
}

/** Pairs of a port and an address of one Endpoints object; those with more stay as they were cut. */
const MAX_PAIRS = 20_000;

export function canonicalSubsets(subsets: readonly Subset[]): readonly Subset[] {
  if (pairsOf(subsets) > MAX_PAIRS) return subsets;
  // One address may belong to several Pods. What is said of it first holds.
  const known = new Map<string, Address>();
  const byPort = new Map<string, Offered>();
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    const members = [
      ...addresses.map((address) => ({ address, id: idOf(address), ready: true })),
      ...notReadyAddresses.map((address) => ({ address, id: idOf(address), ready: false })),
    ];
    for (const { address, id } of members) if (!known.has(id)) known.set(id, address);
    for (const port of ports.length > 0 ? ports : [undefined]) {
      const key = port ? JSON.stringify([port.name ?? '', port.protocol, port.port, port.appProtocol]) : '';
      const offered = byPort.get(key) ?? { port, ready: new Map<string, boolean>() };
      byPort.set(key, offered);
      for (const { id, ready } of members) offered.ready.set(id, ready && offered.ready.get(id) !== false);
    }
  }
  const byAddresses = new Map<string, { ready: ReadonlyMap<string, boolean>; ports: Port[] }>();
  for (const { port, ready } of byPort.values()) {
    const key = JSON.stringify([...ready].sort(([a], [b]) => (a < b ? -1 : 1)));
    const group = byAddresses.get(key) ?? { ready, ports: [] };
    byAddresses.set(key, group);
    if (port) group.ports.push(port);
  }
  return [...byAddresses.values()].map(({ ready, ports }) => {
    const those = (state: boolean): Address[] =>
      [...ready].filter(([, is]) => is === state).map(([id]) => known.get(id)!);
    return { addresses: those(true), notReadyAddresses: those(false), ports };
  });
}

const idOf = ({ ip, targetRef }: Address): string => JSON.stringify([ip, targetRef?.uid]);

const pairsOf = (subsets: readonly Subset[]): number =>
  subsets.reduce(
    (sum, { addresses = [], notReadyAddresses = [], ports = [] }) =>
      sum + (addresses.length + notReadyAddresses.length) * Math.max(ports.length, 1),
    0,
  );
