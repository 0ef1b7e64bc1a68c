# One cluster joins. The bindings are the same file that `landbridge env join --bindings` takes.

provider "kubernetes" {
  config_path = var.kubeconfig
}

provider "helm" {
  kubernetes = {
    config_path = var.kubeconfig
  }
}

variable "kubeconfig" {
  type    = string
  default = "~/.kube/config"
}

variable "credentials" {
  type      = string
  sensitive = true
}

module "cluster_a" {
  source = "../landbridge-dispatcher"

  environment     = "cluster-a"
  image           = "registry.example/landbridge@sha256:0000000000000000000000000000000000000000000000000000000000000000"
  nats_url        = "tls://nats.example:4222"
  credentials     = var.credentials
  work_namespaces = ["landbridge-work"]
  operators       = { jobset = true }
  bindings        = yamldecode(file("${path.module}/bindings.yaml"))
}

output "keeper_url" {
  value = module.cluster_a.keeper_url
}
