import type { Group } from '../steps.ts';

export const DISCOVERY: readonly Group[] = [
  {
    // S-026: The unmodified `kubectl` discovers, explains, creates, gets, describes, applies, edits, waits and deletes,
    //   and reads what it reads from a cluster.
    name: 'discovery',
    steps: [
      {
        run: 'version',
        out: 'Client Version: <...>\nKustomize Version: <...>\nServer Version: v1.36.<n>+coracle',
        err: '<lines>',
      },
      { run: 'api-versions', out: '<lines>apps/v1\n<lines>kubevirt.io/v1\n<lines>\nv1' },
      {
        run: 'api-resources --api-group=apps',
        out: `NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
controllerrevisions  apps/v1  true  ControllerRevision
daemonsets  ds  apps/v1  true  DaemonSet
deployments  deploy  apps/v1  true  Deployment
replicasets  rs  apps/v1  true  ReplicaSet
statefulsets  sts  apps/v1  true  StatefulSet`,
      },
      {
        run: 'api-resources --api-group=kubevirt.io -o name',
        full: true,
        out: `kubevirts.kubevirt.io
virtualmachineinstancemigrations.kubevirt.io
virtualmachineinstancepresets.kubevirt.io
virtualmachineinstancereplicasets.kubevirt.io
virtualmachineinstances.kubevirt.io
virtualmachines.kubevirt.io`,
      },
      {
        run: 'api-resources --api-group=instancetype.kubevirt.io',
        out: `NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
virtualmachineclusterinstancetypes  vmclusterinstancetype,vmclusterinstancetypes,vmcf,vmcfs  instancetype.kubevirt.io/v1beta1  false  VirtualMachineClusterInstancetype
virtualmachineclusterpreferences  vmcp,vmcps  instancetype.kubevirt.io/v1beta1  false  VirtualMachineClusterPreference
virtualmachineinstancetypes  vminstancetype,vminstancetypes,vmf,vmfs  instancetype.kubevirt.io/v1beta1  true  VirtualMachineInstancetype
virtualmachinepreferences  vmpref,vmprefs,vmp,vmps  instancetype.kubevirt.io/v1beta1  true  VirtualMachinePreference`,
      },
      {
        run: 'api-resources --namespaced=false --api-group=storage.k8s.io --verbs=list,watch -o name',
        full: true,
        out: `csidrivers.storage.k8s.io
csinodes.storage.k8s.io
storageclasses.storage.k8s.io
volumeattachments.storage.k8s.io
volumeattributesclasses.storage.k8s.io`,
      },
      {
        run: 'explain pod.spec',
        out: `KIND:  Pod
VERSION:  v1

FIELD: spec <PodSpec>
<lines>DESCRIPTION:
<lines>    What a Pod is to run, where and how.
<lines>containers  <[]Container> -required-
    The containers that run side by side; there is at least one.
<lines>`,
      },
      {
        run: 'explain deployment.spec.replicas',
        full: true,
        out: `GROUP:  apps
KIND:  Deployment
VERSION:  v1

FIELD: replicas <integer>
<lines>DESCRIPTION:
    How many Pods are wanted.<lines>`,
      },
      {
        run: 'explain configmap.data',
        full: true,
        out: 'KIND:  ConfigMap\nVERSION:  v1\n\nFIELD: data <map[string]string>\n<lines>DESCRIPTION:\n    The values, by key.<lines>',
      },
      {
        run: 'explain vm.spec.runStrategy',
        out: 'GROUP:  kubevirt.io\nKIND:  VirtualMachine\nVERSION:  v1\n\nFIELD: runStrategy <string>\n<lines>',
      },
      {
        run: 'explain vmi',
        full: true,
        out: 'GROUP:  kubevirt.io\nKIND:  VirtualMachineInstance\nVERSION:  v1\n<lines>FIELDS:\n<lines>  spec  <...>\n<lines>',
      },
      {
        run: 'explain pods --recursive',
        full: true,
        out: 'KIND:  Pod\n<lines>      containerPort  <integer> -required-\n<lines>',
      },
      {
        run: 'explain pod.spec.nope',
        full: true,
        out: 'KIND:  Pod\nVERSION:  v1',
        err: 'error: field "nope" does not exist',
        code: 1,
      },
      { run: 'explain nope', full: true, err: 'the server doesn\'t have a resource type "nope"', code: 1 },
      {
        run: 'cluster-info',
        out: "Kubernetes control plane is running at https://127.0.0.1:<n>\n\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.",
      },
      { run: 'get --raw /readyz', out: 'ok' },
      { run: 'get --raw /version', full: true, out: '{"major":"1","minor":"36",<...>' },
      {
        run: 'get --raw /api/v1/namespaces/{ns}',
        full: true,
        out: '{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"{ns}",<...>',
      },
      {
        run: 'get --raw /nope',
        err: 'Error from server (NotFound): the server could not find the requested resource',
        code: 1,
      },
      { run: 'get nope', full: true, err: 'error: the server doesn\'t have a resource type "nope"', code: 1 },
      { run: 'top node', err: 'error: metrics not available yet', code: 1 },
      { run: 'top pod', err: 'No resources found in {ns} namespace.' },
    ],
  },
];
