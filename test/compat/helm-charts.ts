/** The charts of the helm tests, written into a folder: what a chart of a virtual machine is made of in practice. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const chart = (name: string, more = ''): string => `apiVersion: v2\nname: ${name}\nversion: 0.1.0\n${more}`;

const LIBRARY = `{{- define "shared.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
`;

/** Subchart, library, crds, lookup, capabilities, hooks and a test, around ConfigMaps. */
const SETTINGS: Readonly<Record<string, string>> = {
  'Chart.yaml': chart(
    'settings',
    'kubeVersion: ">=1.30.0-0"\ndependencies:\n- {name: part, version: 0.1.0}\n- {name: shared, version: 0.1.0}\n',
  ),
  'values.yaml': 'count: 1\npart: {color: blue}\n',
  'charts/part/Chart.yaml': chart('part'),
  'charts/part/templates/map.yaml': `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-part}
data: {color: {{ .Values.color | quote }}}
`,
  'charts/shared/Chart.yaml': chart('shared', 'type: library\n'),
  'charts/shared/templates/_labels.tpl': LIBRARY,
  'crds/flavour.yaml': `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: flavours.helm.example.com}
spec:
  group: helm.example.com
  scope: Namespaced
  names: {plural: flavours, singular: flavour, kind: Flavour}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {sweet: {type: boolean, default: true}}}}
`,
  'templates/flavour.yaml': `{{- if .Capabilities.APIVersions.Has "kubevirt.io/v1/VirtualMachine" }}
apiVersion: helm.example.com/v1
kind: Flavour
metadata: {name: {{ .Release.Name }}}
spec: {}
{{- end }}
`,
  'templates/found.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-found
  labels: {{- include "shared.labels" . | nindent 4 }}
data:
  version: {{ .Capabilities.KubeVersion.Version | quote }}
  class: {{ (lookup "scheduling.k8s.io/v1" "PriorityClass" "" "system-node-critical").value | quote }}
  none: {{ lookup "v1" "Secret" .Release.Namespace "absent" | toJson | quote }}
`,
  'templates/many.yaml': `{{- range $i := until (int .Values.count) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-{{ $i }}}
data: {at: "{{ $i }}"}
{{- end }}
`,
  'templates/hooks.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-before
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-after
  annotations: {helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-delete-policy: hook-succeeded}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-test
  annotations: {helm.sh/hook: test}
`,
  'templates/NOTES.txt': 'running on {{ .Capabilities.KubeVersion }}\n',
};

/** A machine with what a chart puts beside it: type, preference, cloud-init in a Secret, a Service by a port's name. */
const GUEST: Readonly<Record<string, string>> = {
  'Chart.yaml': chart('guest'),
  'values.yaml': 'image: localhost/coracle/tiny\nnote: one\n',
  'templates/guest.yaml': `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: {{ .Release.Name }}}
spec:
  runStrategy: Always
  instancetype: {kind: VirtualMachineInstancetype, name: {{ .Release.Name }}}
  preference: {kind: VirtualMachinePreference, name: {{ .Release.Name }}}
  template:
    metadata:
      labels: {guest: {{ .Release.Name }}}
      annotations: {note: {{ .Values.note | quote }}}
    spec:
      terminationGracePeriodSeconds: 0
      domain:
        devices:
          disks: [{name: root, disk: {}}, {name: seed, disk: {}}]
          interfaces: [{name: default, masquerade: {}, ports: [{name: http, port: 8080}]}]
      networks: [{name: default, pod: {}}]
      volumes:
      - {name: root, containerDisk: {image: {{ .Values.image }}}}
      - {name: seed, cloudInitNoCloud: {secretRef: {name: {{ .Release.Name }}}}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineInstancetype
metadata: {name: {{ .Release.Name }}}
spec: {cpu: {guest: 1}, memory: {guest: 128Mi}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachinePreference
metadata: {name: {{ .Release.Name }}}
spec: {devices: {preferredDiskBus: virtio}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}}
stringData: {userdata: "#cloud-config\\nhostname: {{ .Release.Name }}\\n"}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {guest: {{ .Release.Name }}}
  ports: [{port: 80, targetPort: http}]
`,
};

/** More than a Secret or a ConfigMap can hold, once helm has packed it: random letters do not get smaller. */
const BULKY: Readonly<Record<string, string>> = {
  'Chart.yaml': chart('bulky'),
  'templates/map.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bulky}\n',
};

/** Writes the charts `settings`, `guest` and `bulky` below `folder`. */
export function writeCharts(folder: string): void {
  const write = (name: string, files: Readonly<Record<string, string>>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name, path)), { recursive: true });
      writeFileSync(join(folder, name, path), text);
    }
  };
  const noise = new Uint32Array(300_000);
  let state = 1;
  for (let at = 0; at < noise.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    noise[at] = state ^ (state >>> 15);
  }
  write('settings', SETTINGS);
  write('guest', GUEST);
  write('bulky', { ...BULKY, 'files/noise.txt': Buffer.from(noise.buffer).toString('base64') });
}
