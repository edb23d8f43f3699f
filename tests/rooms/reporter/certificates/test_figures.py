"""The text of the metrics."""

from kubelet_mp.rooms.reporter.certificates.figures import Figures


def test_only_what_is_managed_is_shown() -> None:
    figures = Figures(client=True, server=False)
    figures.failed("client")
    figures.client(1000.0)
    text = figures.text(900.0)
    assert "\nkubelet_certificate_manager_client_ttl_seconds 100.0\n" in text
    assert "\nkubelet_certificate_manager_client_expiration_renew_errors 1\n" in text
    assert "server" not in text


def test_without_a_certificate_the_time_left_is_infinite() -> None:
    figures = Figures(client=False, server=True)
    figures.rotated(3600.0)
    text = figures.text(0.0)
    assert "\nkubelet_certificate_manager_server_ttl_seconds +Inf\n" in text
    assert "\nkubelet_server_expiration_renew_errors 0\n" in text
    assert 'rotation_seconds_bucket{le="60"} 0\n' in text
    assert 'rotation_seconds_bucket{le="3600"} 1\n' in text
    assert 'rotation_seconds_bucket{le="+Inf"} 1\n' in text
    assert "rotation_seconds_sum 3600.0\n" in text
