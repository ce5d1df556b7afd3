import type { Group } from '../steps.ts';
import { CONFIG_MAP, CONFIG_MAP_WITHOUT_ONE, VM } from './manifests.ts';

export const CHANGE: readonly Group[] = [
  {
    // S-026
    name: 'apply',
    steps: [
      { run: 'apply -f -', input: CONFIG_MAP, out: 'configmap/c created' },
      { run: 'apply -f -', input: CONFIG_MAP, out: 'configmap/c unchanged' },
      {
        run: 'diff -f -',
        input: CONFIG_MAP_WITHOUT_ONE,
        out: '<lines>\n data:\n-  one: "1"\n   two: "2"\n<lines>',
        code: 1,
      },
      {
        run: 'apply -f - --dry-run=server',
        input: CONFIG_MAP_WITHOUT_ONE,
        out: 'configmap/c configured (server dry run)',
      },
      { run: "get cm c -o jsonpath='{.data}'", out: '{"one":"1","two":"2"}' },
      { run: 'apply -f -', input: CONFIG_MAP_WITHOUT_ONE, out: 'configmap/c configured' },
      { run: "get cm c -o jsonpath='{.data}'", out: '{"two":"2"}' },
      { run: 'diff -f -', input: CONFIG_MAP_WITHOUT_ONE },
      { run: 'apply view-last-applied cm c', full: true, out: '<lines>  two: "2"\n<lines>' },
      { run: 'apply -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm created' },
      { run: 'apply -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm unchanged' },
      {
        run: 'apply -f -',
        input: VM.replace('app: demo', 'app: other'),
        out: 'virtualmachine.kubevirt.io/vm configured',
      },
      { run: "get vm vm -o jsonpath='{.metadata.labels}'", out: '{"app":"other"}' },
      {
        run: 'create cm made --from-literal=a=b --save-config=false',
        out: 'configmap/made created',
      },
      {
        run: 'apply -f -',
        input: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {c: d}\n',
        out: 'configmap/made configured',
        err: 'Warning: resource configmaps/made is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. <...>',
      },
      { run: "get cm made -o jsonpath='{.data}'", out: '{"a":"b","c":"d"}' },
      {
        run: 'apply -f - --prune -l set=x --prune-allowlist=core/v1/ConfigMap',
        input:
          'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {set: x}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, labels: {set: x}}\n',
        out: 'configmap/one created\nconfigmap/two created',
      },
      {
        run: 'apply -f - --prune -l set=x --prune-allowlist=core/v1/ConfigMap',
        input: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {set: x}}\n',
        out: 'configmap/one unchanged\nconfigmap/two pruned',
      },
    ],
  },
  {
    // S-026
    name: 'server-side apply',
    steps: [
      { run: 'apply --server-side -f -', input: CONFIG_MAP, out: 'configmap/c serverside-applied' },
      {
        run: 'apply --server-side --field-manager=other -f -',
        input: CONFIG_MAP.replace('"1"', '"9"'),
        err: `error: Apply failed with 1 conflict: conflict with "kubectl": .data.one
Please review the fields above--they currently have other managers. Here
<lines>`,
        code: 1,
      },
      {
        run: 'apply --server-side --field-manager=other --force-conflicts -f -',
        input: CONFIG_MAP.replace('"1"', '"9"'),
        out: 'configmap/c serverside-applied',
      },
      { run: "get cm c -o jsonpath='{.data}'", out: '{"one":"9","two":"2"}' },
      {
        run: 'apply --server-side --field-manager=other -f -',
        input: CONFIG_MAP_WITHOUT_ONE,
        out: 'configmap/c serverside-applied',
      },
      { run: "get cm c -o jsonpath='{.data}'", out: '{"two":"2"}' },
      { run: 'apply --server-side -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm serverside-applied' },
      { run: 'apply --server-side -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm serverside-applied' },
    ],
  },
  {
    // S-026
    name: 'edit',
    steps: [
      { run: 'create cm c --from-literal=a=before', out: 'configmap/c created' },
      { run: 'label cm c x=y', out: 'configmap/c labeled' },
      { run: 'label cm c x=y', out: 'configmap/c not labeled' },
      {
        run: 'label cm c x=z',
        full: true,
        err: "error: 'x' already has a value (y), and --overwrite is false",
        code: 1,
      },
      { run: 'label cm c x=z --overwrite', out: 'configmap/c labeled' },
      { run: 'label cm c x-', out: 'configmap/c unlabeled' },
      {
        run: "label cm c 'x=not ok'",
        full: true,
        err: `error: invalid label value: "x=not ok": <...>`,
        code: 1,
      },
      { run: 'annotate cm c note=1', out: 'configmap/c annotated' },
      { run: 'annotate cm c --list', full: true, out: 'note=1' },
      { run: 'edit cm c', env: { EDITOR: 'sed -i s/nothing/none/' }, err: 'Edit cancelled, no changes made.' },
      { run: 'edit cm c', env: { EDITOR: 'sed -i s/before/after/' }, out: 'configmap/c edited' },
      { run: "get cm c -o jsonpath='{.data.a}'", out: 'after' },
      { run: `patch cm c -p '{"data":{"b":"1"}}'`, out: 'configmap/c patched' },
      { run: `patch cm c -p '{"data":{"b":"1"}}'`, out: 'configmap/c patched (no change)' },
      { run: `patch cm c --type=merge -p '{"data":{"b":null}}'`, out: 'configmap/c patched' },
      { run: `patch cm c --type=json -p '[{"op":"add","path":"/data/c","value":"2"}]'`, out: 'configmap/c patched' },
      {
        run: `patch cm c --type=json -p '[{"op":"test","path":"/data/c","value":"3"}]'`,
        err: 'The request is invalid<...>',
        code: 1,
      },
      { run: "get cm c -o jsonpath='{.data}'", out: '{"a":"after","c":"2"}' },
      { run: 'run p --image=i --restart=Never', out: 'pod/p created' },
      { run: `patch pod p -p '{"spec":{"containers":[{"name":"p","image":"j"}]}}'`, out: 'pod/p patched' },
      { run: "get pod p -o jsonpath='{.spec.containers[*].image}'", out: 'j' },
      { run: 'set image pod/p p=k', out: 'pod/p image updated' },
      { run: 'apply -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm created' },
      {
        run: `patch vm vm -p '{"spec":{"runStrategy":"Manual"}}'`,
        err: 'error: application/strategic-merge-patch+json is not supported by kubevirt.io/v1, Kind=VirtualMachine: <...>',
        code: 1,
      },
      {
        run: `patch vm vm --type=merge -p '{"spec":{"runStrategy":"Manual"}}'`,
        out: 'virtualmachine.kubevirt.io/vm patched',
      },
      {
        run: 'create deployment d --image=i',
        out: 'deployment.apps/d created',
        err: 'Warning: nothing acts on this Deployment yet<...>',
      },
      { run: 'scale deployment d --replicas=3', out: 'deployment.apps/d scaled' },
      {
        run: 'scale deployment d --current-replicas=1 --replicas=2',
        err: 'error: Expected replicas to be 1, was 3',
        code: 1,
      },
      { run: 'scale deployment d --replicas=0', full: true, out: 'deployment.apps/d scaled' },
      { run: "get deployment d -o jsonpath='{.spec.replicas}'", full: true, out: '0' },
      {
        run: 'replace -f -',
        input: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {only: this}\n',
        out: 'configmap/c replaced',
      },
      { run: "get cm c -o jsonpath='{.data}'", out: '{"only":"this"}' },
      {
        run: 'replace -f -',
        input: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, resourceVersion: "1"}\n',
        err: 'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply your changes to the latest version and try again',
        code: 1,
      },
      {
        run: 'replace -f -',
        input: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: absent}\n',
        err: 'Error from server (NotFound): error when replacing "STDIN": configmaps "absent" not found',
        code: 1,
      },
      {
        run: 'replace --force -f -',
        input: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n',
        out: 'configmap "c" deleted<from>\nconfigmap/c replaced',
      },
    ],
  },
];
