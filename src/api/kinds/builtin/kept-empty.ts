/**
 * Optional lists and maps that Go writes even when they are empty. Every other optional one is left out then
 * (omitempty): who sends `secrets: []` reads an object without `secrets`.
 */
import type { Schema } from '../../schema/schema.ts';
import { tableNameOf } from './kept-zeros.ts';

/**
 * `package.version.Type: field field ...` per line; `-field` is a required one that Go leaves out all the same. Facts of
 * the Go types of Kubernetes 1.36.
 */
const TABLE = `
admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec: -validationActions
apiextensions.v1.CustomResourceDefinitionStatus: conditions storedVersions
authentication.v1.TokenRequestSpec: audiences
autoscaling.v2.HorizontalPodAutoscalerStatus: currentMetrics
core.v1.ContainerImage: names
core.v1.ProjectedVolumeSource: sources
discovery.v1.EndpointSlice: endpoints ports
flowcontrol.v1.ResourcePolicyRule: namespaces
rbac.v1.ClusterRole: rules
rbac.v1.Role: rules
resource.v1.AllocatedDeviceStatus: conditions
resource.v1.CounterSet: -counters
resource.v1.DeviceClaim: requests
resource.v1.DeviceCounterConsumption: -counters
storage.v1.CSINodeDriver: topologyKeys
`;

/** Empty ownership is no state but a request to lose it, which whoever tracks ownership has to see. */
const REQUESTS = 'meta.v1.ObjectMeta: managedFields';

let parsed: ReadonlyMap<string, ReadonlySet<string>> | undefined;

/** The table by type: `rbac.v1.Role` -> fields. */
export function keptEmpties(): ReadonlyMap<string, ReadonlySet<string>> {
  parsed ??= new Map(
    [...TABLE.trim().split('\n'), REQUESTS].map((line) => {
      const [type = '', fields = ''] = line.split(': ');
      return [type, new Set(fields.split(' '))];
    }),
  );
  return parsed;
}

/** The lists and maps of `schema` that stay when they are empty: required ones and those of the table, as it says. */
export function keepsEmpty(schema: Schema): (property: string) => boolean {
  const required = new Set(schema.required);
  const kept = keptEmpties().get(tableNameOf(schema['x-coracle-name'] ?? ''));
  return (property) => (required.has(property) && kept?.has(`-${property}`) !== true) || kept?.has(property) === true;
}
