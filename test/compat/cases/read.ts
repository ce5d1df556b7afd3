import type { Group } from '../steps.ts';
import { CONFIG_MAP, VM } from './manifests.ts';

export const READ: readonly Group[] = [
  {
    // S-026
    name: 'get',
    steps: [
      {
        run: 'apply -f -',
        input: `${CONFIG_MAP}---\n${VM}`,
        out: 'configmap/c created\nvirtualmachine.kubevirt.io/vm created',
      },
      { run: 'create cm d', out: 'configmap/d created' },
      { run: 'run p --image=i --restart=Never', out: 'pod/p created' },
      { run: 'get cm c', out: 'NAME  DATA  AGE\nc  2  <age>' },
      { run: 'get cm c --no-headers', full: true, out: 'c  2  <age>' },
      { run: 'get cm c --show-labels', full: true, out: 'NAME  DATA  AGE  LABELS\nc  2  <age>  a=b' },
      { run: 'get cm c d -L a', full: true, out: 'NAME  DATA  AGE  A\nc  2  <age>  b\nd  0  <age>' },
      { run: 'get cm c -o name', full: true, out: 'configmap/c' },
      { run: 'get cm/c vm/vm -o name', out: 'configmap/c\nvirtualmachine.kubevirt.io/vm' },
      { run: "get cm c -o jsonpath='{.metadata.name} {.data.one}'", full: true, out: 'c 1' },
      { run: "get cm c -o go-template='{{.data.two}}'", full: true, out: '2' },
      {
        run: 'get cm c d -o custom-columns=NAME:.metadata.name,ONE:.data.one',
        full: true,
        out: 'NAME  ONE\nc  1\nd  <none>',
      },
      {
        run: 'get cm c -o yaml',
        out: `apiVersion: v1
data:
  one: "1"
  two: "2"
kind: ConfigMap
metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"v1","data":{"one":"1","two":"2"},"kind":"ConfigMap","metadata":{"annotations":{},"labels":{"a":"b"},"name":"c","namespace":"{ns}"}}
  creationTimestamp: "<time>"
  labels:
    a: b
  name: c
  namespace: {ns}
  resourceVersion: "<n>"
  uid: <uuid>`,
      },
      {
        run: 'get cm d -o json',
        full: true,
        out: '{\n    "apiVersion": "v1",\n    "kind": "ConfigMap",\n    "metadata": {\n<lines>        "uid": "<uuid>"\n    }\n}',
      },
      {
        run: 'get cm c -o yaml --show-managed-fields',
        full: true,
        out: '<lines>  managedFields:\n  - apiVersion: v1\n<lines>    manager: kubectl-client-side-apply\n    operation: Update\n    time: "<time>"\n<lines>',
      },
      {
        run: 'get pod p -o wide',
        out: 'NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES\np  0/1  Pending  0  <age>  <none>  <none>  <none>  <none>',
      },
      { run: 'get vm', out: 'NAME  AGE  STATUS  READY\nvm  <age>  Stopped  False' },
      {
        run: 'get vm,vmi',
        full: true,
        out: 'NAME  AGE  STATUS  READY\nvirtualmachine.kubevirt.io/vm  <age>  Stopped  False',
      },
      { run: 'get cm -l a=b -o name', out: 'configmap/c' },
      { run: "get cm -l 'a notin (b)' -o name", out: 'configmap/d\nconfigmap/kube-root-ca.crt' },
      { run: 'get cm --field-selector metadata.name=d -o name', out: 'configmap/d' },
      { run: 'get pods --field-selector status.phase=Pending -o name', out: 'pod/p' },
      {
        run: 'get pods --field-selector nope=1',
        err: 'Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", field selector "nope=1": field label not supported: nope',
        code: 1,
      },
      { run: 'get cm --chunk-size=1 -o name', out: 'configmap/c\nconfigmap/d\nconfigmap/kube-root-ca.crt' },
      {
        run: 'get cm --sort-by=.metadata.name --no-headers',
        full: true,
        out: 'c  2  <age>\nd  0  <age>\nkube-root-ca.crt  1  <age>',
      },
      { run: 'get pods -n {ns} -l a=none', full: true, err: 'No resources found in {ns} namespace.' },
      { run: 'get cm nope', err: 'Error from server (NotFound): configmaps "nope" not found', code: 1 },
      { run: 'get cm nope --ignore-not-found', full: true },
      { run: 'get pods -A --field-selector metadata.namespace={ns} -o name', out: 'pod/p' },
      {
        run: 'get all',
        out: 'NAME  READY  STATUS  RESTARTS  AGE\npod/p  0/1  Pending  0  <age>\n\nNAME  AGE  STATUS  READY\nvirtualmachine.kubevirt.io/vm  <age>  Stopped  False',
        err: '<lines>',
      },
    ],
  },
  {
    // S-026
    name: 'describe',
    steps: [
      { run: 'run p --image=i --restart=Never', out: 'pod/p created' },
      { run: 'wait pod/p --for=condition=PodScheduled=False --timeout=60s', out: 'pod/p condition met' },
      { run: 'get events --watch', until: /FailedScheduling/, out: '<lines>' },
      {
        run: 'describe pod p',
        out: `Name:  p
Namespace:  {ns}
<lines>
Status:  Pending
<lines>
Containers:
  p:
    Image:  i
<lines>
QoS Class:  BestEffort
<lines>
Events:
<lines>
  Warning  FailedScheduling  <age>  default-scheduler  <...>`,
      },
      { run: 'apply -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm created' },
      {
        run: "wait vm/vm --for=jsonpath='{.status.printableStatus}'=Stopped --timeout=60s",
        out: 'virtualmachine.kubevirt.io/vm condition met',
      },
      {
        run: 'describe vm vm',
        out: `Name:  vm
Namespace:  {ns}
Labels:  app=demo
<lines>
API Version:  kubevirt.io/v1
Kind:  VirtualMachine
<lines>
  Run Strategy:  Halted
<lines>
  Printable Status:  Stopped
<lines>`,
      },
      {
        run: 'describe ns {ns}',
        out: `Name:  {ns}
Labels:  kubernetes.io/metadata.name={ns}
Annotations:  <none>
Status:  Active

No resource quota.

No LimitRange resource.`,
      },
      {
        run: 'get events',
        out: 'LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\n<age>  Warning  FailedScheduling  pod/p  <...><lines>',
      },
      {
        run: 'events --for pod/p',
        full: true,
        out: 'LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\n<age>  Warning  FailedScheduling  Pod/p  <...>',
      },
    ],
  },
  {
    // S-026
    name: 'watch',
    steps: [
      {
        run: 'get cm -w -o name',
        after: /kube-root-ca/,
        meanwhile: [
          { run: 'create cm w', out: 'configmap/w created' },
          { run: 'label cm w a=b', out: 'configmap/w labeled' },
        ],
        until: /configmap\/w\nconfigmap\/w\n/,
        out: 'configmap/kube-root-ca.crt\nconfigmap/w\nconfigmap/w',
      },
      {
        run: 'get cm w -w --output-watch-events',
        after: /ADDED/,
        meanwhile: [{ run: 'delete cm w', out: 'configmap "w" deleted<from>' }],
        until: /DELETED.*\n/,
        out: 'EVENT  NAME  DATA  AGE\nADDED  w  0  <age>\nDELETED  w  0  <age>',
      },
      {
        run: 'get cm -w --request-timeout=3s --no-headers',
        full: true,
        out: 'kube-root-ca.crt  1  <age>',
        err: '<lines>',
      },
    ],
  },
];
