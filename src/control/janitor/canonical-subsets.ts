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

export function canonicalSubsets(subsets: readonly Subset[]): Subset[] {
  // One address may belong to several Pods. What is said of it first holds.
  const known = new Map<string, Address>();
  const byPort = new Map<string, Offered>();
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    for (const port of ports.length > 0 ? ports : [undefined]) {
      const key = port ? JSON.stringify([port.name ?? '', port.protocol, port.port, port.appProtocol]) : '';
      const offered = byPort.get(key) ?? { port, ready: new Map<string, boolean>() };
      byPort.set(key, offered);
      const add = (address: Address, ready: boolean): void => {
        const id = JSON.stringify([address.ip, address.targetRef?.uid]);
        if (!known.has(id)) known.set(id, address);
        offered.ready.set(id, ready && offered.ready.get(id) !== false);
      };
      for (const address of addresses) add(address, true);
      for (const address of notReadyAddresses) add(address, false);
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
