/** Topology is a field of EndpointSlices of the time before v1 (endpointslice/strategy.go). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isObject, type JsonObject, listAt } from '@coracle/apimachinery/types/read-value';

export function dropTopology(slice: Record<string, unknown>): void {
  if (!Array.isArray(slice['endpoints'])) return;
  slice['endpoints'] = slice['endpoints'].map((endpoint) => {
    if (!isObject(endpoint) || endpoint['deprecatedTopology'] === undefined) return endpoint;
    const { deprecatedTopology: _, ...kept } = endpoint;
    return kept;
  });
}

/** Endpoints that stay as they are keep it. */
export function dropNewTopology(slice: Record<string, unknown>, old: JsonObject): void {
  if (!deepEqual(listAt(slice, 'endpoints'), listAt(old, 'endpoints'))) dropTopology(slice);
}
