/**
 * The Pod behind the Service of an export: its port 8443 on some node leads to the server of exports, by the network that
 * nodes have, so that who reaches Pods only (`kubectl port-forward`, `virtctl vmexport --port-forward`) can download. It
 * mounts no claim: bytes come from the pool, and a guest that wants its disk waits for nobody.
 */
import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { Pod, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyExport } from '../../kinds/kubevirt.ts';
import { EXPORT_SERVICE_LABEL, exportServiceName } from './export-names.ts';

/** Port of the container; the Service has it as 443. */
export const EXPORTER_PORT = 8443;
/** A label, not an image: agents tell by it what they are to serve, and never pull it. */
const IMAGE = 'coracle/virt-exportserver:builtin';
const USER = 107;
const REQUESTS = { cpu: '10m', memory: '2M' };
const LIMITS = { cpu: '100m', memory: '80M' };

/** True for Pods whose port leads to the server of exports. */
export const isExporter = ({ spec }: ReadonlyPod): boolean => spec.containers[0]?.image === IMAGE;

/** Whether somebody can download through the Pod now. */
export const isExporterReady = (pod: ReadonlyPod): boolean => !isDeleting(pod) && isConditionTrue(pod, 'Ready');

/** Builds it; also nodes that take no other Pods run it, since disks are taken from such nodes. */
export const exporterPod = (object: ReadonlyExport): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: exportServiceName(object),
    namespace: object.metadata.namespace ?? '',
    labels: { [EXPORT_SERVICE_LABEL]: object.metadata.name ?? '' },
    ownerReferences: [controllerReference(object)],
  },
  spec: {
    restartPolicy: 'Never',
    enableServiceLinks: false,
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 0,
    securityContext: {
      fsGroup: USER,
      runAsGroup: USER,
      runAsNonRoot: true,
      runAsUser: USER,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'exporter',
        image: IMAGE,
        ports: [{ containerPort: EXPORTER_PORT, protocol: 'TCP' }],
        resources: { requests: { ...REQUESTS }, limits: { ...LIMITS } },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
    tolerations: [{ operator: 'Exists' }],
  },
});
