/** Our own one-line descriptions of volumes, claims and storage; the notation is that of `type-texts.ts`. */
export const VOLUME_TEXTS = `
@core
Volume: Something that containers can mount; one source is set.
  awsElasticBlockStore: An EBS disk; deprecated, use csi.
  azureDisk: An Azure disk; deprecated, use csi.
  azureFile: An Azure file share; deprecated, use csi.
  cephfs: A CephFS; no longer supported.
  cinder: A Cinder disk; deprecated, use csi.
  configMap: The keys of a ConfigMap as files.
  csi: A volume that a CSI driver makes for the life of the Pod.
  downwardAPI: Fields of the Pod as files.
  emptyDir: An empty folder that lasts as long as the Pod.
  ephemeral: A claim that lasts as long as the Pod.
  fc: A Fibre Channel disk.
  flexVolume: A volume of a FlexVolume driver; deprecated, use csi.
  flocker: A Flocker volume; no longer supported.
  gcePersistentDisk: A disk of Google Compute Engine; deprecated, use csi.
  gitRepo: A git repository; no longer supported.
  glusterfs: A GlusterFS volume; no longer supported.
  hostPath: A file or folder of the node.
  image: The files of a container image.
  iscsi: An iSCSI disk.
  name: How volumeMounts call it.
  nfs: A folder of an NFS server.
  persistentVolumeClaim: The volume of a claim.
  photonPersistentDisk: A Photon disk; no longer supported.
  portworxVolume: A Portworx volume; deprecated, use csi.
  projected: Several sources in one folder.
  quobyte: A Quobyte volume; no longer supported.
  rbd: A Ceph block device; no longer supported.
  scaleIO: A ScaleIO volume; no longer supported.
  secret: The keys of a Secret as files.
  storageos: A StorageOS volume; no longer supported.
  vsphereVolume: A vSphere disk; deprecated, use csi.
VolumeDevice: A block device that a container sees.
  devicePath: Where the device stands in the container.
  name: The volume.
VolumeMount: Where a volume is mounted.
  mountPath: The folder in the container.
  mountPropagation: Whether later mounts are seen on the other side: None, HostToContainer or Bidirectional.
  name: The volume.
  recursiveReadOnly: Whether readOnly holds for mounts below, too: Disabled, IfPossible or Enabled.
  subPath: The folder or file of the volume that is mounted; all of it when empty.
  subPathExpr: Like subPath, with $(NAME) for environment variables.
VolumeMountStatus: How a volume is mounted.
  mountPath: The folder in the container.
  name: The volume.
  recursiveReadOnly: Whether mounts below can only be read, too.
  volumeStatus: More about the volume.
VolumeStatus: More about a mounted volume.
  image: The image that is mounted.
ImageVolumeStatus: The image that is mounted.
  imageRef: The image, by digest.
ConfigMapVolumeSource, SecretVolumeSource, DownwardAPIVolumeSource, ProjectedVolumeSource: Files that are made from objects.
  defaultMode: The mode of files that name none.
  items: Which keys become files, and where; all when empty.
  secretName: The Secret.
  sources: The sources.
ConfigMapProjection, SecretProjection, DownwardAPIProjection: A source of files in a projected volume.
  items: Which keys become files, and where; all when empty.
KeyToPath: A key and its file.
  key: The key.
  mode: The mode of the file.
  path: The file inside the volume.
DownwardAPIVolumeFile: A file with a field of the Pod.
  fieldRef: The field.
  mode: The mode of the file.
  path: The file inside the volume.
  resourceFieldRef: A request or limit of a container.
VolumeProjection: A source of a projected volume; one is set.
  clusterTrustBundle: Certificates of authorities that are trusted.
  configMap: The keys of a ConfigMap.
  downwardAPI: Fields of the Pod.
  podCertificate: A certificate and key of the Pod's own.
  secret: The keys of a Secret.
  serviceAccountToken: A token of the service account.
ServiceAccountTokenProjection: A file with a token, renewed in time.
  audience: Whom the token is for; the API server when empty.
  expirationSeconds: How long a token lasts.
  path: The file inside the volume.
ClusterTrustBundleProjection: A file with certificates of authorities.
  labelSelector: The bundles, by labels.
  path: The file inside the volume.
  signerName: The bundles, by signer.
PodCertificateProjection: Files with a certificate and its key, renewed in time.
  certificateChainPath: The file with the certificates.
  credentialBundlePath: The file with key and certificates.
  keyPath: The file with the key.
  keyType: The kind of key that is made.
  maxExpirationSeconds: The longest life a certificate may have.
  signerName: Who signs.
  userAnnotations: What the signer is told.
EmptyDirVolumeSource: An empty folder that lasts as long as the Pod.
  medium: Where it is kept: empty for the node's disk, Memory for its memory.
  sizeLimit: The most it may hold.
EphemeralVolumeSource: A claim that lasts as long as the Pod.
  volumeClaimTemplate: What the claim looks like.
HostPathVolumeSource: A file or folder of the node.
  path: Where it is on the node.
  type: What must be there, or is made: Directory, DirectoryOrCreate, File, FileOrCreate, Socket and others.
ImageVolumeSource: The files of a container image.
  pullPolicy: When the image is pulled: Always, IfNotPresent or Never.
  reference: The image.
NFSVolumeSource: A folder of an NFS server.
  path: The folder on the server.
  server: The host of the server.
PersistentVolumeClaimVolumeSource: The volume of a claim in the same namespace.
  claimName: The claim.
CSIVolumeSource, CSIPersistentVolumeSource: A volume of a CSI driver.
  controllerExpandSecretRef: The Secret the driver grows the volume with.
  controllerPublishSecretRef: The Secret the driver attaches the volume with.
  driver: The name of the driver.
  nodeExpandSecretRef: The Secret the node grows the volume with.
  nodePublishSecretRef: The Secret the node mounts the volume with.
  nodeStageSecretRef: The Secret the node prepares the volume with.
  volumeAttributes: What the driver is told about the volume.
  volumeHandle: How the driver calls the volume.
ISCSIVolumeSource, ISCSIPersistentVolumeSource: An iSCSI disk.
  chapAuthDiscovery: Whether discovery asks for a CHAP login.
  chapAuthSession: Whether the session asks for a CHAP login.
  initiatorName: The name of this side.
  iqn: The name of the target.
  iscsiInterface: The interface of the initiator.
  lun: The number of the disk in the target.
  portals: More addresses of the target.
  targetPortal: The address of the target.
FCVolumeSource: A Fibre Channel disk.
  lun: The number of the disk in the target.
  targetWWNs: The names of the targets.
  wwids: The ids of the disk, in place of target and number.
LocalVolumeSource: A disk or folder of one node.
  path: Where it is on the node.
AWSElasticBlockStoreVolumeSource: An EBS disk.
  partition: The partition; 0 for the whole disk.
  volumeID: The id of the disk.
AzureDiskVolumeSource: An Azure disk.
  cachingMode: None, ReadOnly or ReadWrite.
  diskName: The name of the disk.
  diskURI: The address of the disk.
  kind: Shared, Dedicated or Managed.
AzureFileVolumeSource, AzureFilePersistentVolumeSource: An Azure file share.
  secretName: The Secret with the account.
  secretNamespace: The namespace of the Secret.
  shareName: The share.
CephFSVolumeSource, CephFSPersistentVolumeSource: A CephFS.
  monitors: The addresses of the monitors.
  path: The folder to mount.
  secretFile: The file with the key.
  user: The user.
CinderVolumeSource, CinderPersistentVolumeSource: A Cinder disk.
  volumeID: The id of the disk.
FlexVolumeSource, FlexPersistentVolumeSource: A volume of a FlexVolume driver.
  driver: The name of the driver.
  options: What the driver is told.
FlockerVolumeSource: A Flocker volume.
  datasetName: The name of the dataset.
  datasetUUID: The id of the dataset.
GCEPersistentDiskVolumeSource: A disk of Google Compute Engine.
  partition: The partition; 0 for the whole disk.
  pdName: The name of the disk.
GitRepoVolumeSource: A git repository.
  directory: The folder to put it in.
  repository: The address of the repository.
  revision: The commit.
GlusterfsVolumeSource, GlusterfsPersistentVolumeSource: A GlusterFS volume.
  endpoints: The Endpoints object of the servers.
  endpointsNamespace: The namespace of that object.
  path: The volume.
PhotonPersistentDiskVolumeSource: A Photon disk.
  pdID: The id of the disk.
PortworxVolumeSource: A Portworx volume.
  volumeID: The id of the volume.
QuobyteVolumeSource: A Quobyte volume.
  group: The group of the files.
  registry: The addresses of the registry.
  tenant: The tenant.
  user: The owner of the files.
  volume: The volume.
RBDVolumeSource, RBDPersistentVolumeSource: A Ceph block device.
  image: The image.
  keyring: The file with the key.
  monitors: The addresses of the monitors.
  pool: The pool.
  user: The user.
ScaleIOVolumeSource, ScaleIOPersistentVolumeSource: A ScaleIO volume.
  gateway: The address of the gateway.
  protectionDomain: The protection domain.
  sslEnabled: Whether the gateway is spoken to over TLS.
  storageMode: ThickProvisioned or ThinProvisioned.
  storagePool: The pool.
  system: The storage system.
  volumeName: The volume.
StorageOSVolumeSource, StorageOSPersistentVolumeSource: A StorageOS volume.
  volumeName: The volume.
  volumeNamespace: The namespace of the volume.
VsphereVirtualDiskVolumeSource: A vSphere disk.
  storagePolicyID: The id of the storage policy.
  storagePolicyName: The storage policy.
  volumePath: The path of the disk.
PersistentVolumeSpec < Volume: A piece of storage and how it is used.
  accessModes: How it can be mounted: ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod.
  capacity: How much it holds.
  claimRef: The claim that it is bound to.
  csi: A volume of a CSI driver.
  local: A disk or folder of one node.
  mountOptions: Options of the mount.
  nodeAffinity: The nodes that can reach it.
  persistentVolumeReclaimPolicy: What happens when the claim is gone: Retain, Delete or Recycle.
  storageClassName: The StorageClass it belongs to.
  volumeAttributesClassName: The VolumeAttributesClass it belongs to.
  volumeMode: Filesystem or Block.
PersistentVolumeStatus: How the storage was last seen.
  lastPhaseTransitionTime: When phase last changed.
  phase: Pending, Available, Bound, Released or Failed.
VolumeNodeAffinity: The nodes that can reach a volume.
  required: What such a node fulfils.
PersistentVolumeClaimSpec: What storage is asked for.
  accessModes: How it must be possible to mount it.
  dataSource: What the volume is filled from: a claim or a snapshot.
  dataSourceRef: What the volume is filled from: any kind that somebody fills volumes from.
  resources: How much is asked for.
  selector: The volumes that suit, by labels.
  storageClassName: The StorageClass to take the volume from; the default one when absent.
  volumeAttributesClassName: The VolumeAttributesClass that the volume should have.
  volumeMode: Filesystem or Block.
  volumeName: The volume that the claim is bound to.
PersistentVolumeClaimStatus: What the claim has got.
  accessModes: How the volume can be mounted.
  allocatedResourceStatuses: How far a change of size is, by resource.
  allocatedResources: The size that a change is heading for.
  capacity: How much the volume holds.
  currentVolumeAttributesClassName: The VolumeAttributesClass that the volume has.
  modifyVolumeStatus: How far a change of that class is.
  phase: Pending, Bound or Lost.
PersistentVolumeClaimCondition: One thing that is true, false or unknown of a claim.
  status: True, False or Unknown.
  type: What it is about, such as Resizing.
PersistentVolumeClaimTemplate: What a claim that is made for a Pod looks like.
  spec: The storage that is asked for.
ModifyVolumeStatus: How far a change of a volume's class is.
  status: Pending, InProgress or Infeasible.
  targetVolumeAttributesClassName: The class that the change is heading for.
TypedLocalObjectReference, TypedObjectReference: An object, by kind and name.
@storage
CSIDriver: A CSI driver of this cluster.
CSIDriverSpec: What a CSI driver needs and can do.
  attachRequired: Whether volumes must be attached before they are mounted.
  fsGroupPolicy: Whether the owner of files is changed: File, ReadWriteOnceWithFSType or None.
  nodeAllocatableUpdatePeriodSeconds: How often the number of volumes for a node is looked at again.
  podInfoOnMount: Whether the driver is told about the Pod.
  preventPodSchedulingIfMissing: Whether Pods wait while no node has the driver.
  requiresRepublish: Whether the driver is called again and again while the volume is mounted.
  seLinuxMount: Whether the driver can mount with an SELinux label.
  serviceAccountTokenInSecrets: Whether tokens are given to the driver as secrets.
  storageCapacity: Whether the scheduler should look at CSIStorageCapacity objects.
  tokenRequests: The tokens of service accounts that the driver is given.
  volumeLifecycleModes: Persistent, Ephemeral or both.
CSINode: The CSI drivers of a node.
CSINodeSpec: The CSI drivers of a node.
  drivers: One entry for each driver.
CSINodeDriver: A CSI driver on a node.
  allocatable: How many volumes the node can have.
  nodeID: How the driver calls the node.
  topologyKeys: The node labels that the driver reads.
CSIStorageCapacity: How much room a driver has in one part of the cluster.
  capacity: How much room there is.
  maximumVolumeSize: The largest volume that can be made.
  nodeTopology: The nodes it is about.
  storageClassName: The StorageClass it is about.
StorageClass:
  allowVolumeExpansion: Whether claims may grow.
  allowedTopologies: Where volumes may be made.
  mountOptions: Options of the mount.
  parameters: What the provisioner is told.
  provisioner: Who makes the volumes.
  reclaimPolicy: What happens to a volume when its claim is gone: Delete or Retain.
  volumeBindingMode: When the volume is made: Immediate or WaitForFirstConsumer.
TokenRequest: A token that a driver is given.
  audience: Whom the token is for.
  expirationSeconds: How long a token lasts.
VolumeAttachment: That a volume is, or should be, attached to a node.
VolumeAttachmentSource: The volume.
  inlineVolumeSpec: The volume, written out.
  persistentVolumeName: The PersistentVolume.
VolumeAttachmentSpec: What is attached where.
  attacher: The driver that does it.
  nodeName: The node.
  source: The volume.
VolumeAttachmentStatus: How far it is.
  attachError: What went wrong with attaching.
  attached: Whether it is attached.
  attachmentMetadata: What the node must know to mount it.
  detachError: What went wrong with detaching.
VolumeAttributesClass: Named settings of volumes that can be changed later.
  driverName: The CSI driver.
  parameters: What the driver is told.
VolumeError: What went wrong.
  errorCode: The number of the error.
  time: When it happened.
VolumeNodeResources: What a node can have of a driver.
  count: How many volumes.
`;
